"""Verify an exported model in TensorFlow's C++ runtime, as TensorFlow Serving runs it.

Checks that a server can run the SavedModel, loads it in TensorFlow's C++ runtime without Python and
with XLA disabled, compares its outputs with those of the task before its export, and replays the
warm-up records. Exits with status 1 if outputs differ or a server could not run it, with status 2
if the export is incomplete.

examples:
  keras-attn verify exported/g2p        the newest version
  keras-attn verify exported/g2p/3
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `verify`."""
    parser.add_argument("folder", metavar="DIR", help="an exported model, or one of its versions")


def run(options: argparse.Namespace) -> int:
    """Verifies, prints the report, and returns 1 if a problem was found."""
    from keras_attn.export import verify

    report = verify(options.folder)
    print(report)
    return 0 if report.ok else 1

"""Verify an exported model in TensorFlow's C++ runtime, as TensorFlow Serving runs it."""

import argparse

EPILOG = """\
Looks for what a server could not run, loads the SavedModel in TensorFlow's C++ runtime without
Python and with XLA disabled, compares its outputs with those that the task gave before it was
exported, and replays the warm-up records. Ends with status 1 where an output is another one or a
server could not run it, with status 2 where the folder is no whole export.

examples:
  keras-attn verify exported/g2p        the newest version
  keras-attn verify exported/g2p/3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `verify`."""
    parser.add_argument("folder", metavar="DIR", help="an exported model, or one of its versions")


def run(options: argparse.Namespace) -> int:
    """Verifies, prints the report, and returns 1 where something was found."""
    from keras_attn.export import verify

    report = verify(options.folder)
    print(report)
    return 0 if report.ok else 1

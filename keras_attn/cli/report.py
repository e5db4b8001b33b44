"""Make a page or a picture of a run: curves, results, samples, settings.

`train` writes RUN/report.html at its end if matplotlib is installed (pip install
'keras_attn[viz]'). This command writes it again, also for a run in progress.

examples:
  keras-attn report runs/g2p
  keras-attn report runs/g2p --picture curves.png
"""

import argparse
from pathlib import Path

from keras_attn.cli.terminal import quiet_start
from keras_attn.files import replaced_file
from keras_attn.validation import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `report`."""
    add = parser.add_argument
    add("run_folder", metavar="RUN", help="the run")
    add("--picture", metavar="FILE", help="only write the curves, as FILE.png or FILE.svg")


def run(options: argparse.Namespace) -> None:
    """Writes the page or the picture, and prints where it is."""
    with quiet_start():
        from keras_attn.training.reporting.pictures import draw_curves, save_picture
        from keras_attn.training.reporting.report import read_rows, write_report

    if options.picture is None:
        print(write_report(options.run_folder))
        return
    picture = Path(options.picture)
    kind = picture.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise UserError(f"--picture takes FILE.png or FILE.svg. Received: {options.picture}")
    rows = read_rows(Path(options.run_folder))
    with replaced_file(picture) as temporary:
        save_picture(draw_curves, rows, file=temporary, kind=kind)
    print(picture)

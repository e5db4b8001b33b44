"""Files that a command writes at its end, looked at before its work begins."""

import argparse
import os
from pathlib import Path


def output_file(path: str) -> Path:
    """Gives the path of a file that can be written; a `type` of argparse.

    Raises:
        ArgumentTypeError: It is a folder, or the folder that it is to lie in is missing or cannot
            be written to.
    """
    file = Path(path)
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"the file must lie in a folder that exists and can be written to. Received: {path!r}"
        )
    return file


def picture_file(path: str) -> Path:
    """Gives the path of a PNG file that can be written; a `type` of argparse.

    Raises:
        ArgumentTypeError: It has another ending, or see `output_file`.
    """
    file = output_file(path)
    if file.suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(f"a picture is FILE.png. Received: {path!r}")
    return file

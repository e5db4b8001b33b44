"""Checks of output files before a command starts its work."""

import argparse
import os
from pathlib import Path


def output_file(path: str) -> Path:
    """Checks that a file can be written; a `type` of argparse.

    Raises:
        ArgumentTypeError: It is a folder, or the folder above is missing or cannot be written.
    """
    file = Path(path)
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"the file must be in a folder that exists and can be written to. Received: {path!r}"
        )
    return file


def picture_file(path: str) -> Path:
    """Checks that a PNG file can be written; a `type` of argparse.

    Raises:
        ArgumentTypeError: Its name does not end with .png, or see `output_file`.
    """
    file = output_file(path)
    if file.suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(f"a picture must be FILE.png. Received: {path!r}")
    return file

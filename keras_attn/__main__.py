"""Starts the command line: `keras-attn`, and `python -m keras_attn`."""

import sys
import warnings

from keras_attn.processes import forget_current_folder


def main() -> int:
    """Runs the command line without the files of the current folder."""
    forget_current_folder()  # before any import that could find modules there
    warnings.formatwarning = _in_one_line

    from keras_attn.cli import main as run

    return run()


def _in_one_line(message: Warning | str, *_: object) -> str:
    return f"keras-attn: {message}\n"


if __name__ == "__main__":
    sys.exit(main())

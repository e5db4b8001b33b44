"""Starts the command line: `keras-attn`, and `python -m keras_attn`."""

import sys

from keras_attn.processes import forget_current_folder


def main() -> int:
    """Runs the command line without the files of the current folder."""
    forget_current_folder()  # before any import that could find modules there

    from keras_attn.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())

"""Lets `python -m keras_attn` do what `keras-attn` does."""

import sys

from keras_attn.processes import forget_current_folder

if __name__ == "__main__":
    forget_current_folder()  # before anything is imported that could lie there

    from keras_attn.cli import main

    sys.exit(main())

"""Lets `python -m keras_attn` do what `keras-attn` does."""

import sys

from keras_attn.cli import main

if __name__ == "__main__":
    sys.exit(main())

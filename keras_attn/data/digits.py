"""Handwritten digits of 8 x 8 pixels, as PNG images in a fixed split."""

import hashlib

import numpy as np
import tensorflow as tf

from keras_attn.data.files import Pairs
from keras_attn.data.images import ImageFile
from keras_attn.validation import UserError

_BUCKETS = 100
_TEST_BUCKETS = range(20)
_VALIDATION_BUCKETS = range(20, 30)
_GREATEST = 16  # of the pixels of scikit-learn


def load_digits() -> dict[str, Pairs]:
    """Reads the 1,797 digits of scikit-learn, in a fixed split.

    A source is a gray PNG image of 8 x 8 pixels, a target its digit; the pixels' 0 to 16 become
    0 to 255, rounded.

    The split depends only on the image: the first eight bytes of the SHA-256 of its 64
    pixels, one byte each from 0 to 16, as a big-endian number modulo 100, put it into the test
    part (0 to 19), the validation part (20 to 29) or the training part (30 to 99).

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: scikit-learn is not installed.

    Reference:
        Alpaydin and Kaynak, 1998, https://doi.org/10.24432/C50P49 (its test part).
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise UserError(
            "The data set digits needs scikit-learn: pip install 'keras_attn[images]'."
        ) from error
    digits = datasets.load_digits()
    parts: dict[str, list[tuple[ImageFile, str]]] = {"train": [], "validation": [], "test": []}
    for number, (pixels, digit) in enumerate(zip(digits.images, digits.target, strict=True)):
        pixels = pixels.astype(np.uint8)
        name = split_of(pixels)
        grey = np.round(pixels * (255 / _GREATEST)).astype(np.uint8)
        content = tf.io.encode_png(grey[..., None]).numpy()
        parts[name].append((ImageFile(content, f"digit {number}"), str(digit)))
    return {
        name: Pairs([image for image, _ in rows], [digit for _, digit in rows], f"digits/{name}")
        for name, rows in parts.items()
    }


def split_of(pixels: np.ndarray) -> str:
    """The part of the digits that an image belongs to: train, validation or test.

    Args:
        pixels: uint8 (8, 8), from 0 to 16.
    """
    digest = hashlib.sha256(pixels.tobytes()).digest()
    bucket = int.from_bytes(digest[:8], "big") % _BUCKETS
    if bucket in _TEST_BUCKETS:
        return "test"
    return "validation" if bucket in _VALIDATION_BUCKETS else "train"

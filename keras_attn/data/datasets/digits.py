"""Handwritten digits of 8 x 8 pixels, as PNG images in a fixed split."""

import numpy as np

from keras_attn.data.files import Pairs
from keras_attn.data.images import ImageFile, png_of
from keras_attn.data.split import parts_of, split_by_hash
from keras_attn.validation import UserError

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

    Examples:
        >>> parts = load_digits()
        >>> {name: len(pairs) for name, pairs in parts.items()}
        {'train': 1225, 'validation': 190, 'test': 382}
        >>> images, labels = parts["test"].sources[:2], parts["test"].targets[:2]
        >>> images_to_array(images, height=8, width=8, channels=1).shape, labels
        ((2, 8, 8, 1), ['1', '2'])

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
    return parts_of(map(_row, range(len(digits.target)), digits.images, digits.target), "digits")


def _row(number: int, pixels: np.ndarray, digit: int) -> tuple[str, ImageFile, str]:
    """The part that a digit belongs to, its image and its label."""
    pixels = pixels.astype(np.uint8)
    grey = np.round(pixels * (255 / _GREATEST)).astype(np.uint8)
    part = split_by_hash(pixels.tobytes(), test=20, validation=10)
    return part, png_of(grey, f"digit {number}"), str(digit)

"""Labeled images as pixels, for a classifier."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples.base import Batch, Examples, Signature
from keras_attn.data.examples.labelled import class_numbers
from keras_attn.data.files import Pairs
from keras_attn.data.images import images_to_array, scaled_pixels
from keras_attn.data.stored.cache import release
from keras_attn.data.stored.images import StoredImages

_IMAGES_A_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class ImageRows:
    """Images of one size, each as long as the number of patches that a model divides it into.

    Attributes:
        pixels: Images, uint8 (images, height, width, channels), perhaps a memory-mapped file.
        rows: Which of them the rows are, indices (rows,).
        positions: Length of an image, its number of patches.
    """

    pixels: np.ndarray
    rows: np.ndarray
    positions: int

    @property
    def lengths(self) -> np.ndarray:
        """Length of each row, (rows,) int64."""
        return self.lengths_of(np.arange(len(self.rows)))

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some rows, (count,) int64."""
        return np.full(len(rows), self.positions, np.int64)

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields the pixels of all images in pieces."""
        for begin in range(0, len(self.rows), _IMAGES_A_BLOCK):
            yield self.pixels[self.rows[begin : begin + _IMAGES_A_BLOCK]]
            self.release()

    def release(self) -> None:
        """Gives back the memory of pixels that are in a file."""
        release(self.pixels)

    def padded(self, rows: np.ndarray, height: int) -> np.ndarray:
        """Returns rows as a model takes them, followed by rows of zeros.

        Args:
            rows: Indices of the rows, (count,) integers.
            height: Number of rows of the array, at least `count`.

        Returns:
            float32 (height, height of an image, width, channels), from -1 to 1.
        """
        batch = np.zeros((height, *self.pixels.shape[1:]), np.float32)
        batch[: len(rows)] = scaled_pixels(self.pixels[self.rows[rows]].astype(np.float32))
        return batch


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageExamples(Examples):
    """Decoded images with their class numbers.

    A batch is `({"images": (rows, height, width, channels)}, labels (rows,))`, the images float32
    from -1 to 1, the labels counted from 1; 0 where a row is padding.

    Attributes:
        image: The images.
        classes: The class of each, int32 (rows,), counted from 1.

    Examples:
        >>> digits, labels = load_digits()["test"], [str(digit) for digit in range(10)]
        >>> examples = ImageExamples.from_pairs(
        ...     digits, labels, image_size=(8, 8), channels=1, positions=4  # patches of 4 x 4
        ... )
        >>> inputs, classes = examples.assemble([0, 1])
        >>> inputs["images"].shape, classes
        ((2, 8, 8, 1), array([2, 3], dtype=int32))
    """

    image: ImageRows
    classes: np.ndarray

    kind: ClassVar = "image"
    read_units = ("images", "patches")
    _sides = ("image",)

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        labels: Sequence[str],
        image_size: tuple[int, int],
        channels: int,
        positions: int,
        **resizing: Any,
    ) -> "ImageExamples":
        """Decodes images.

        Args:
            pairs: PNG images as sources, as `read_labelled_images` returns them, and their
                labels as targets.
            labels: All labels, in the order of their numbers.
            image_size: Height and width in pixels to which all images are resized.
            channels: 1 for gray, 3 for colors.
            positions: Number of patches of an image, which `batch_tokens` counts.
            **resizing: `resize_to` and `interpolation` of `decode_images`.

        Returns:
            All images.

        Raises:
            UserError: A label is none of `labels`, or there are neither 1 nor 3 channels.
        """
        classes = class_numbers(pairs, labels, cls.kind)
        images, rows = pairs.sources, np.arange(len(pairs))
        if isinstance(images, StoredImages):
            pixels = images.pixels(*image_size, channels, **resizing)
            rows = rows if images.rows is None else images.rows
        else:
            pixels = images_to_array(images, *image_size, channels, **resizing)
        return cls(
            image=ImageRows(pixels, rows, positions),
            classes=classes,
            indices=np.arange(len(pairs)),
            name=pairs.name,
        )

    @property
    def signature(self) -> Signature:
        """Specifications of a batch, of the images' size."""
        shape = [None, *self.image.pixels.shape[1:]]
        return {"images": tf.TensorSpec(shape, tf.float32)}, tf.TensorSpec([None], tf.int32)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        labels = np.pad(self.classes[rows], (0, shape[0] - len(rows)))
        return {"images": self.image.padded(rows, shape[0])}, labels

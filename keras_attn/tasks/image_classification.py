"""Image classification."""

from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import check_images, decode_images, read_images, scaled_pixels
from keras_attn.data.images import check_resizing
from keras_attn.tasks.labels import BaseClassificationTask
from keras_attn.tasks.token_view import TokenView
from keras_attn.validation import require

_IMAGES_A_BATCH = 64


class ImageClassificationTask(BaseClassificationTask):
    """Classifies PNG images.

    An image is the content of a PNG file, as bytes. Inside the graph it is decoded to the model's
    size, depth and colors (see `keras_attn.data.decode_images`).

    Args:
        backbone: A model from `{"images": float32 (batch, height, width, channels)}`, from -1 to
            1 and of known sizes, to logits (batch, labels): `keras_attn.models.SequenceClassifier`
            on a `PatchEncoder`.
        labels: The labels, in the order of the logits.
        resize_to: Height and width to which images are resized before their middle, of the model's
            size, is cut out; one number for the shorter side, the longer one in proportion. By
            default they are resized to the model's size.
        interpolation: "bilinear", "bicubic" or "lanczos3".

    Raises:
        UserError: The labels are fewer than two, repeated, or not as many as the logits, the
            model's images have neither 1 nor 3 channels, or are larger than `resize_to`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> encoder = PatchEncoder(image_size=8, patch_size=4, channels=1, **sizes)
        >>> labels = [str(digit) for digit in range(10)]
        >>> task = ImageClassificationTask(SequenceClassifier(encoder, num_classes=10), labels)
        >>> images = load_digits()["test"].sources
        >>> task.probabilities(images[:2]).shape
        (2, 10)
    """

    kind = "image_classification"
    served_input = "image_bytes"
    _roles = ()
    _saved = ("labels", "resize_to", "interpolation")
    _saved_later: ClassVar = {"resize_to": None, "interpolation": "bilinear"}

    def __init__(
        self,
        backbone: keras.Model,
        labels: Sequence[str],
        *,
        resize_to: int | Sequence[int] | None = None,
        interpolation: str = "bilinear",
    ):
        super().__init__(backbone, {}, labels)
        require("images" in backbone.input, "The model must take images.", inputs=[*backbone.input])
        height, width, channels = backbone.input["images"].shape[1:]
        require(channels in (1, 3), "PNG images have 1 or 3 channels.", channels=channels)
        self.image_size = height, width
        self.channels = channels
        check_resizing(height, width, resize_to, interpolation)
        self.resize_to = [*resize_to] if isinstance(resize_to, Sequence) else resize_to
        self.interpolation = interpolation

    @property
    def _encoding(self):
        return "pixels", tf.TensorSpec([None, *self.image_size, self.channels], tf.uint8), {}

    def pixels(self, images: tf.Tensor) -> tf.Tensor:
        """Decodes PNG images inside a graph.

        Args:
            images: Strings (batch,), each the content of a PNG file.

        Returns:
            uint8 (batch, height, width, channels), of the model's sizes.

        Raises:
            InvalidArgumentError: An image cannot be decoded.
        """
        height, width = self.image_size
        return decode_images(images, height, width, self.channels, **self.resizing)

    @property
    def resizing(self) -> dict[str, Any]:
        """How images become as large as the model's, see `keras_attn.data.decode_images`."""
        return {"resize_to": self.resize_to, "interpolation": self.interpolation}

    def read_tokens(self, strings: tf.Tensor) -> TokenView:
        """Reads images as the model does, with rows and columns of their patches for tokens.

        Args:
            strings: Strings (batch,), each the content of a PNG file.

        Raises:
            InvalidArgumentError: An image cannot be decoded.
        """
        names = _patches(self.backbone)
        if names is not None:
            names = tf.repeat(tf.constant([names]), tf.shape(strings)[0], axis=0)
        return TokenView(self.model_inputs(self.pixels(strings)), source=names)

    def example_texts(self) -> list[bytes]:
        """Returns PNG images of several kinds: the model's own, transparent, 16-bit."""
        height, width = self.image_size
        return [
            _gradient(height, width, self.channels, np.uint8),
            _gradient(height + 3, 2 * width, 4, np.uint8),
            _gradient(2 * height, width + 1, 1, np.uint16),
        ]

    def _encoded(self, strings):
        return self.pixels(strings)

    def model_inputs(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for pixels."""
        return {"images": scaled_pixels(tf.cast(encoded, tf.float32))}

    def _batches(self, inputs):
        images = check_images(inputs)
        return images, image_batches(images)


def _patches(model: keras.Model) -> list[str] | None:
    """Names of the positions of an image: rows and columns of its patches, from 0."""
    config = getattr(model, "encoder", model).get_config()
    if "patch_size" not in config:
        return None
    sides = (np.broadcast_to(config[name], 2) for name in ("image_size", "patch_size"))
    rows, columns = np.floor_divide(*sides)
    first = ["[class]"] if config["class_token"] else []
    first += ["[distillation]"] if config.get("distillation_token") else []
    return first + [f"{row},{column}" for row in range(rows) for column in range(columns)]


def image_batches(images: Sequence[bytes]) -> list[list[int]]:
    """Groups images into batches, and returns the positions of the images of each."""
    positions = list(range(len(images)))
    begins = range(0, len(images), _IMAGES_A_BATCH)
    return [positions[begin : begin + _IMAGES_A_BATCH] for begin in begins]


def _gradient(height: int, width: int, channels: int, dtype: type) -> bytes:
    """A PNG image with a different brightness gradient in each channel."""
    y, x, channel = np.ogrid[:height, :width, :channels]
    slopes = (y / height * (channel + 1) + x / width * (channel + 2)) % 1
    return tf.io.encode_png((slopes * np.iinfo(dtype).max).astype(dtype)).numpy()


def read_inputs(kind: str, words: list[str]) -> Sequence[Any]:
    """Converts command-line words or lines to a task's inputs.

    Args:
        kind: The name of the task, exported or not.
        words: Texts, or paths of image files for an image task.

    Returns:
        Inputs of the task's `predict`.

    Raises:
        UserError: A file is missing, or is not an image.

    Examples:
        >>> read_inputs("seq2seq", ["cat", "dog"])
        ['cat', 'dog']
        >>> keras.utils.save_img("scan.png", np.zeros((8, 8, 3)))
        >>> read_inputs("image_classification", ["scan.png"])[0].name
        'scan.png'
    """
    return read_images(words) if kind == ImageClassificationTask.kind else words

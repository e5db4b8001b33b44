"""Reading of PNG files, and decoding to images of one size, inside and outside of a graph."""

import concurrent.futures
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.limits import IMAGE_PIXELS
from keras_attn.reading import read_bytes
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import UserError, is_integer, require, require_one_of

INTERPOLATIONS = ("bilinear", "bicubic", "lanczos3")
"""How images may be resized."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OTHERS = {b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"BM": "BMP", b"RIFF": "WebP", b"II*\0": "TIFF"}
_WHITE = 255.0
_DEPTH = 24  # position of the bits per sample in a PNG file, followed by its color type
_SIZE = 16  # position of its width and height
_IMAGES_A_CALL = 256


class ImageFile(bytes):
    """The content of a PNG file, with the name of the file.

    Two of them are equal if their contents are.

    Args:
        content: What the file holds.
        name: Name of the image in messages.

    Examples:
        >>> from pathlib import Path
        >>> keras.utils.save_img("scan.png", np.zeros((8, 8, 3)))
        >>> image = ImageFile(Path("scan.png").read_bytes(), "scan.png")
        >>> image.name, image == Path("scan.png").read_bytes()
        ('scan.png', True)
    """

    name: str

    def __new__(cls, content: bytes, name: str) -> "ImageFile":
        """Makes bytes with a name."""
        image = super().__new__(cls, content)
        image.name = name
        return image


def png_of(pixels: np.ndarray, name: str) -> ImageFile:
    """Encodes gray values, uint8 (height, width), as a PNG file."""
    return ImageFile(tf.io.encode_png(pixels[..., None]).numpy(), name)


def read_image(path: str | os.PathLike) -> ImageFile:
    """Reads a PNG file.

    Args:
        path: The file.

    Returns:
        Its content, that of an image that can be decoded.

    Raises:
        UserError: The file is missing, unreadable, damaged or no PNG file.
    """
    image = read_png(path)
    _check(image, image.name)
    return image


def read_png(path: str | os.PathLike) -> ImageFile:
    """Reads a file that was checked before."""
    return ImageFile(read_bytes(Path(path)), str(path))


def read_images(
    paths: Iterable[str | os.PathLike], mistakes: list[UserError] | None = None
) -> list[ImageFile | None]:
    """Reads PNG files, several at a time.

    Args:
        paths: The files.
        mistakes: List that collects the errors of invalid files, for which the result contains
            `None`. Without a list the first error is raised.

    Returns:
        The results of `read_image`, in the order of the paths.

    Raises:
        UserError: A file is missing, unreadable, damaged or no PNG file.

    Examples:
        >>> keras.utils.save_img("scan.png", np.zeros((8, 8, 3)))
        >>> images = read_images(["scan.png"])
        >>> images[0].name
        'scan.png'
        >>> images_to_array(images, height=4, width=4, channels=3).shape
        (1, 4, 4, 3)
    """

    def read(path: str | os.PathLike) -> ImageFile | None:
        try:
            return read_image(path)
        except UserError as error:
            if mistakes is None:
                raise
            mistakes.append(error)
            return None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(read, paths))


def check_images(images: Sequence[bytes]) -> list[bytes]:
    """Checks a list of PNG images.

    Args:
        images: Contents of PNG files.

    Returns:
        The images as a list.

    Raises:
        UserError: A single image was passed instead of a list, or an item is not a PNG image.

    Examples:
        >>> check_images([b"GIF89a"])
        Traceback (most recent call last):
            ...
        keras_attn.validation.UserError: images[0]: expected a PNG image, found ...
    """
    if isinstance(images, str | bytes):
        raise UserError(
            f"`images` must be a list of images, not a single image. Received: {images[:8]!r}…"
        )
    images = list(images)
    for position, image in enumerate(images):
        name = f"images[{position}]"
        require(isinstance(image, bytes), f"`{name}` must be bytes.", type=type(image).__name__)
        _check(image, getattr(image, "name", name))
    return images


def decode_images(
    images: TensorLike,
    height: int,
    width: int,
    channels: int,
    *,
    resize_to: int | Sequence[int] | None = None,
    interpolation: str = "bilinear",
) -> tf.Tensor:
    """Decodes PNG images of any size, depth and color type inside a graph.

    Transparent pixels are drawn on white. Images are resized with antialiasing, without keeping
    their aspect ratio unless `resize_to` is one number. 16 bits per sample are reduced to 8. For
    one channel, colors become gray by their luminance (ITU-R BT.601); for three, gray images get
    three equal channels.

    Args:
        images: Strings (batch,), each the content of a PNG file.
        height: Height of the decoded images, in pixels.
        width: Width of the decoded images, in pixels.
        channels: 1 for gray, 3 for red, green and blue.
        resize_to: Height and width to which images are resized before their middle is cut out, or
            one number for their shorter side, with the longer one in proportion. By default they
            are resized to the size that is returned, and nothing is cut off.
        interpolation: "bilinear", "bicubic" or "lanczos3".

    Returns:
        uint8 (batch, height, width, channels).

    Raises:
        InvalidArgumentError: An image cannot be decoded, when the graph runs.
        UserError: `channels` is neither 1 nor 3, `resize_to` is smaller than the size that is
            returned, or there is no such interpolation.

    Examples:
        >>> import tensorflow as tf
        >>> keras.utils.save_img("scan.png", np.zeros((8, 8, 3)))
        >>> files = tf.data.Dataset.from_tensor_slices(["scan.png"]).map(tf.io.read_file).batch(32)
        >>> pixels = files.map(lambda images: decode_images(images, height=4, width=4, channels=1))
        >>> next(iter(pixels)).shape
        (1, 4, 4, 1)
    """
    require(channels in (1, 3), "`channels` must be 1 or 3.", channels=channels)
    check_resizing(height, width, resize_to, interpolation)

    def decoded(image: tf.Tensor) -> tf.Tensor:
        pixels = tf.cast(tf.io.decode_png(image, channels=4), tf.float32)
        colours, opacity = pixels[..., :3], pixels[..., 3:] / _WHITE
        opacity = tf.where(_is_coarse_grey(image, pixels), tf.math.ceil(opacity), opacity)
        colours = colours * opacity + _WHITE * (1.0 - opacity)
        if channels == 1:
            colours = tf.image.rgb_to_grayscale(colours)
        size = _resized(tf.shape(colours), resize_to) if resize_to else (height, width)
        colours = tf.image.resize(colours, size, interpolation, antialias=True)
        if resize_to:
            top, left = (size[0] - height) // 2, (size[1] - width) // 2
            colours = colours[top : top + height, left : left + width]
        return tf.cast(tf.clip_by_value(tf.round(colours), 0.0, 255.0), tf.uint8)

    shape = tf.TensorSpec([height, width, channels], tf.uint8)
    return tf.map_fn(decoded, images, fn_output_signature=shape)


def check_resizing(height: int, width: int, resize_to: Any, interpolation: str) -> None:
    """Checks how images are resized; see `decode_images`.

    Args:
        height: Height of the decoded images.
        width: Width of the decoded images.
        resize_to: Size before they are cut.
        interpolation: Name of the interpolation.

    Raises:
        UserError: There is nothing to cut from, or no such interpolation.
    """
    require_one_of("interpolation", interpolation, INTERPOLATIONS)
    if resize_to is None:
        return
    sides = (resize_to, resize_to) if is_integer(resize_to) else tuple(resize_to)
    valid = len(sides) == 2 and all(map(is_integer, sides))
    require(
        valid and sides[0] >= height and sides[1] >= width,
        "`resize_to` must be one or two numbers of pixels, not below the size of the images.",
        resize_to=resize_to,
        size=(height, width),
    )


def _resized(shape: tf.Tensor, resize_to: int | Sequence[int]) -> Any:
    """Height and width of an image after resizing."""
    if isinstance(resize_to, Sequence):
        return tuple(resize_to)
    sides = shape[:2]
    shorter = tf.reduce_min(sides)
    return resize_to * sides // shorter


def images_to_array(
    images: Sequence[bytes], height: int, width: int, channels: int, **resizing: Any
) -> np.ndarray:
    """Decodes PNG images as `decode_images` does.

    Args:
        images: Contents of PNG files that can be decoded.
        height: Height of the decoded images, in pixels.
        width: Width of the decoded images, in pixels.
        channels: 1 or 3.
        **resizing: `resize_to` and `interpolation` of `decode_images`.

    Returns:
        uint8 (images, height, width, channels).

    Examples:
        >>> images = load_digits()["test"].sources
        >>> pixels = images_to_array(images[:32], height=16, width=16, channels=3)
        >>> pixels.shape, pixels.dtype
        ((32, 16, 16, 3), dtype('uint8'))
    """
    result = np.zeros((len(images), height, width, channels), np.uint8)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def decode(batch: tf.Tensor) -> tf.Tensor:
        return decode_images(batch, height, width, channels, **resizing)

    with tf.device("CPU"):
        for begin in range(0, len(images), _IMAGES_A_CALL):
            some = list(images[begin : begin + _IMAGES_A_CALL])
            result[begin : begin + len(some)] = decode(tf.constant(some, tf.string)).numpy()
    return result


def scaled_pixels(pixels: Tensor) -> Tensor:
    """Scales pixels from 0 to 255 to -1 to 1.

    Args:
        pixels: An array or a tensor of float32.

    Returns:
        An array or tensor of the same shape.

    Examples:
        >>> scaled_pixels(np.array([0.0, 127.5, 255.0]))
        array([-1.,  0.,  1.])

    Reference:
        Dosovitskiy et al., 2021, https://arxiv.org/abs/2010.11929, whose code takes a mean and a
        standard deviation of a half.
    """
    return pixels / 127.5 - 1.0


def _is_coarse_grey(image: tf.Tensor, decoded: tf.Tensor) -> tf.Tensor:
    """Whether a PNG image has 1, 2 or 4 bits of gray.

    TensorFlow decodes these as nearly transparent, because the opacity that it adds has only that
    many bits set. In such images a real opacity is either 0 or the maximum.
    """
    with tf.control_dependencies([decoded]):  # reports truncated images first
        header = tf.io.decode_raw(tf.strings.substr(image, _DEPTH, 2), tf.uint8)
    depth, colour_type = header[0], header[1]
    return (depth < 8) & (colour_type == 0)


def mistake_of_image(path: str | os.PathLike) -> str | None:
    """What is wrong with a file by its first bytes, or `None`."""
    with Path(path).open("rb") as file:
        begin = file.read(len(_SIGNATURE))
    return None if begin == _SIGNATURE else f"{path}: expected a PNG image, found {_kind_of(begin)}"


def _kind_of(image: bytes) -> str:
    """What a file that is no PNG image is."""
    found = (f"{kind}: convert it" for begin, kind in _OTHERS.items() if image.startswith(begin))
    return next(found, f"a file that begins with {image[:8]!r}")


def _check(image: bytes, name: str) -> None:
    if not image.startswith(_SIGNATURE):
        raise UserError(f"{name}: expected a PNG image, found {_kind_of(image)}.")
    width, height = (int.from_bytes(image[_SIZE + at : _SIZE + at + 4]) for at in (0, 4))
    IMAGE_PIXELS.check(width * height, name)
    try:
        tf.io.decode_png(image)
    except tf.errors.InvalidArgumentError:
        raise UserError(f"{name}: the PNG image is damaged or truncated.") from None

"""PNG files of all kinds against Pillow, and their mistakes."""

import io
import struct
import zlib

import numpy as np
import PIL.Image
import pytest
import tensorflow as tf

from keras_attn.data import ImageFile, check_images, decode_images, images_to_array, read_images
from keras_attn.data.images import scaled_pixels
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

RNG = np.random.default_rng(1)
SMOOTH = (
    np.add.outer(np.arange(13) * 9, np.arange(17) * 7)[..., None] + np.array([0, 20, 55])
) % 256


def png(image, **options):
    file = io.BytesIO()
    image.save(file, "png", **options)
    return file.getvalue()


def of(array, mode=None):
    return PIL.Image.fromarray(array.astype("uint8"), mode)


def transparent(colours, opacity):
    return of(np.concatenate([colours, opacity], axis=2))


COLOURS = RNG.integers(0, 256, (6, 10, 3)).astype("uint8")
OPACITY = RNG.integers(0, 256, (6, 10, 1)).astype("uint8")
GREY = COLOURS[..., 0]
DEEP = RNG.integers(0, 2**16, (6, 10)).astype("uint16")
ON_WHITE = COLOURS * (OPACITY / 255) + 255 * (1 - OPACITY / 255)
KINDS = {
    "colours": (of(COLOURS), COLOURS),
    "grey": (of(GREY), np.stack([GREY] * 3, -1)),
    "transparent": (transparent(COLOURS, OPACITY), ON_WHITE),
    "palette": (of(COLOURS // 85 * 85).quantize(64), COLOURS // 85 * 85),
    "black and white": (of(GREY // 128 * 255).convert("1"), np.stack([GREY // 128 * 255] * 3, -1)),
    "16 bits": (PIL.Image.fromarray(DEEP), np.stack([DEEP // 256] * 3, -1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_png(kind):
    image, expected = KINDS[kind]
    found = images_to_array([png(image)], 6, 10, 3)
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found[0], expected, atol=0.51)
    luminance = expected @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(
        images_to_array([png(image)], 6, 10, 1)[0, ..., 0], luminance, atol=0.6
    )


def chunk(name, content):
    whole = name + content
    return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))


@pytest.mark.parametrize("transparent", [None, 0, 1])
@pytest.mark.parametrize(("depth", "row"), [(1, 0b01100110), (2, 0b00011011), (4, 0x0F)])
def test_coarse_grey_written_bit_by_bit(depth, row, transparent):
    width = 8 // depth
    header = struct.pack(">IIBBBBB", width, 1, depth, 0, 0, 0, 0)
    image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    if transparent is not None:
        image += chunk(b"tRNS", struct.pack(">H", transparent))
    image += chunk(b"IDAT", zlib.compress(bytes([0, row]))) + chunk(b"IEND", b"")
    samples = [row >> (8 - depth * (place + 1)) & (2**depth - 1) for place in range(width)]
    expected = [
        255 if sample == transparent else sample * 255 // (2**depth - 1) for sample in samples
    ]
    assert images_to_array([image], 1, width, 1)[0, 0, :, 0].tolist() == expected


def test_several_at_once():
    images = [png(of(array)) for array in (COLOURS, 255 - COLOURS, COLOURS[::-1])]
    found = images_to_array(images, 6, 10, 3)
    np.testing.assert_array_equal(found, np.stack([COLOURS, 255 - COLOURS, COLOURS[::-1]]))
    assert images_to_array([], 6, 10, 3).shape == (0, 6, 10, 3)


@pytest.mark.parametrize("size", [(5, 7), (26, 34), (13, 17), (3, 40)])
def test_another_size_is_scaled_as_pillow_scales(size):
    image = of(SMOOTH)
    expected = np.asarray(image.resize(size[::-1], PIL.Image.Resampling.BILINEAR))
    found = images_to_array([png(image)], *size, 3)[0]
    np.testing.assert_allclose(found.astype(int), expected.astype(int), atol=1)
    if size == (13, 17):
        np.testing.assert_array_equal(found, SMOOTH)


MIDDLES = {
    "both sides": ((20, 31), (4, 10), (20, 31)),
    "the shorter side": (9, (9, 8), (9, int(9 * 17 / 13))),
    "nothing is cut": ((5, 7), (5, 7), (5, 7)),
}


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos3"])
@pytest.mark.parametrize("name", MIDDLES)
def test_the_middle_of_a_resized_image(name, interpolation):
    resize_to, (height, width), size = MIDDLES[name]
    image = of(SMOOTH)  # 13 x 17
    kind = PIL.Image.Resampling[interpolation.upper().removesuffix("3")]
    expected = np.asarray(image.resize(size[::-1], kind)).astype(int)
    top, left = (size[0] - height) // 2, (size[1] - width) // 2
    expected = expected[top : top + height, left : left + width]
    resizing = {"resize_to": resize_to, "interpolation": interpolation}
    found = images_to_array([png(image)], height, width, 3, **resizing)[0]
    np.testing.assert_allclose(found.astype(int), expected, atol=2)  # Pillow rounds twice


@pytest.mark.parametrize(
    ("resizing", "message"),
    [
        ({"resize_to": 5}, r"not below the size of the images. .* resize_to=5, size=\(6, 10\)"),
        ({"resize_to": (6, 9)}, "not below the size"),
        ({"resize_to": (6, 10, 3)}, "must be one or two numbers"),
        ({"interpolation": "cubic"}, "`interpolation` must be one of 'bilinear', 'bicubic'"),
    ],
)
def test_how_images_are_not_resized(resizing, message):
    with pytest.raises(UserError, match=message):
        images_to_array([png(of(COLOURS))], 6, 10, 3, **resizing)


def test_more_than_one_call_holds():
    grey = np.arange(300, dtype="uint16").astype("uint8")
    images = [png(of(np.full((2, 2), value))) for value in grey]
    np.testing.assert_array_equal(images_to_array(images, 2, 2, 1)[:, 1, 1, 0], grey)


def test_pixels_are_scaled():
    pixels = np.array([0, 127.5, 255], "float32")
    assert scaled_pixels(pixels).tolist() == [-1, 0, 1]


def test_channels_are_one_or_three():
    with pytest.raises(UserError, match="1 or 3. Received: channels=4"):
        decode_images(tf.constant([png(of(COLOURS))]), 6, 10, 4)


def test_files_are_read_in_order_and_keep_their_names(tmp_path):
    paths = [tmp_path / f"{number}.png" for number in range(9)]
    for number, path in enumerate(paths):
        path.write_bytes(png(of(COLOURS + number)))
    images = read_images(map(str, paths))
    assert images == [path.read_bytes() for path in paths]
    assert [image.name for image in images] == list(map(str, paths))
    assert images[0] == ImageFile(images[0], "another name")
    assert len({*images, ImageFile(images[0], "another name")}) == 9


WHOLE = png(of(COLOURS))
DAMAGED = {
    "cut.png": (WHOLE[:-30], "the PNG image is damaged or truncated."),
    "changed.png": (WHOLE[:60] + b"!" + WHOLE[61:], "the PNG image is damaged or truncated."),
    "words.png": (
        b"not an image",
        "expected a PNG image, found a file that begins with b'not an i'.",
    ),
    "empty.png": (b"", "expected a PNG image, found a file that begins with b''."),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named(name, tmp_path):
    content, message = DAMAGED[name]
    good = tmp_path / "good.png"
    good.write_bytes(WHOLE)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_images([good, tmp_path / name, good])
    assert str(caught.value) == f"{tmp_path / name}: {message}"
    mistakes = []
    assert read_images([good, tmp_path / name], mistakes) == [WHOLE, None]
    assert [str(mistake) for mistake in mistakes] == [str(caught.value)]


def test_no_file_or_a_folder(tmp_path):
    refused(r"absent.png: no such file\.", read_images, [tmp_path / "absent.png"])
    refused("expected a regular file", read_images, [tmp_path])


def test_what_is_given_from_python():
    assert check_images((WHOLE,)) == [WHOLE]
    refused("list of images, not a single", check_images, WHOLE)
    refused("`images.1.` must be bytes. Received: type='str'", check_images, [WHOLE, "cat.png"])
    with pytest.raises(UserError, match=r"images\[1\]: the PNG image is damaged or truncated."):
        check_images([WHOLE, WHOLE[:-30]])

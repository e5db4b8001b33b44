"""PNG files that are read when they are needed, and their pixels in memory-mapped files."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

import keras_attn
from keras_attn.data.images import ImageFile, images_to_array, read_image, read_png
from keras_attn.data.in_order import in_order
from keras_attn.data.stored.cache import Cache, EntryWriter
from keras_attn.data.stored.column import KEY_BYTES, StoredColumn, key_of
from keras_attn.validation import UserError

_IMAGES_A_BLOCK = 1024


class StoredImages(StoredColumn[ImageFile]):
    """PNG files, each read when it is needed.

    Args:
        cache: The cache that pixels are kept in.
        paths: All files.
        digest: A checksum of their contents.
        keys: A number for each file, uint64: equal for equal contents.
        rows: Which of the files these are, indices int64; `None` for all.
    """

    def __init__(
        self,
        cache: Cache,
        paths: Sequence[Path],
        digest: str,
        keys: np.ndarray,
        rows: np.ndarray | None = None,
    ):
        super().__init__(cache, digest, keys, rows)
        self._paths = paths

    def of_rows(self, rows: np.ndarray | None) -> "StoredImages":
        """Other files of the column, by indices int64; all of them for `None`."""
        return StoredImages(self.cache, self._paths, self.digest, self._keys, rows)

    def pixels(self, height: int, width: int, channels: int, **resizing: Any) -> np.ndarray:
        """Decodes all images of the column, or opens what an earlier run decoded.

        Args:
            height: Height of the decoded images, in pixels.
            width: Width of the decoded images, in pixels.
            channels: 1 or 3.
            **resizing: `resize_to` and `interpolation` of `decode_images`.

        Returns:
            uint8 (all images, height, width, channels), memory-mapped.
        """
        images = self.whole

        def write(writer: EntryWriter) -> Mapping[str, Any]:
            for begin in range(0, len(images), _IMAGES_A_BLOCK):
                some = images[begin : begin + _IMAGES_A_BLOCK]
                writer.add("pixels", images_to_array(some, height, width, channels, **resizing))
            return {}

        shape = [height, width, channels]
        key = {"images": self.digest, "shape": shape, "version": keras_attn.__version__, **resizing}
        return self.cache.entry("pixels", key, write).arrays["pixels"]

    @overload
    def __getitem__(self, index: int) -> ImageFile: ...

    @overload
    def __getitem__(self, index: slice) -> list[ImageFile]: ...

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        row = range(len(self))[index]
        return read_png(self._paths[row if self.rows is None else int(self.rows[row])])


def stored_images(
    cache: Cache, paths: Sequence[Path], skip_bad_files: bool = False
) -> tuple[StoredImages, np.ndarray]:
    """Checks PNG files, unless an earlier run has checked the same.

    Args:
        cache: The cache.
        paths: The files.
        skip_bad_files: Whether invalid files are left out instead of raising an error.

    Returns:
        The valid files, and the indices of their paths.

    Raises:
        UserError: A file is missing, unreadable, damaged or no PNG file.
    """

    def summary_of(path: Path) -> bytes:
        content = _unless_bad(read_png, path, skip_bad_files)
        return b"" if content is None else key_of(content) + hashlib.sha256(content).digest()

    def is_valid(path: Path) -> bool:
        return _unless_bad(read_image, path, skip_bad_files) is not None

    def write(writer: EntryWriter) -> Mapping[str, Any]:
        writer.add("is_valid", np.array(list(in_order(is_valid, paths)), bool))
        return {}

    summaries = list(in_order(summary_of, paths))
    digest = hashlib.sha256(b"".join(summaries)).hexdigest()
    key = {"images": digest, "skips": skip_bad_files, "version": keras_attn.__version__}
    kept = np.flatnonzero(cache.entry("images", key, write).arrays["is_valid"])
    keys = np.frombuffer(b"".join(summaries[row][:KEY_BYTES] for row in kept.tolist()), np.uint64)
    return StoredImages(cache, [paths[row] for row in kept.tolist()], digest, keys), kept


def _unless_bad(read: Callable[[Path], ImageFile], path: Path, skip: bool) -> ImageFile | None:
    """A file, or `None` for an invalid one that is to be skipped."""
    try:
        return read(path)
    except UserError:
        if not skip:
            raise
        return None

"""Bytes of files: local or remote, plain or compressed, within limits."""

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from keras_attn.limits import COMPRESSION, DECOMPRESSED_BYTES, LINE_BYTES
from keras_attn.validation import UserError, require

_ALWAYS_READ = 16 << 20
_CHUNK_BYTES = 1 << 20


class Compression(NamedTuple):
    """A kind of compressed files.

    Attributes:
        name: Its name in messages.
        magic: How its files begin.
        suffixes: How their names usually end.
        opened: From a file to a stream of its decompressed bytes.
        errors: What reading a damaged file raises.
    """

    name: str
    magic: bytes
    suffixes: tuple[str, ...]
    opened: Callable[[Any], Any]
    errors: tuple[type[Exception], ...] = (EOFError, OSError)


def _zstd(file: Any) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UserError(
            "Files compressed with zstd need pyarrow: pip install 'keras_attn[arrow]'."
        ) from None
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


COMPRESSIONS = (
    Compression(
        "gzip",
        b"\x1f\x8b",
        (".gz",),
        lambda file: gzip.GzipFile(fileobj=file),
        (EOFError, OSError, zlib.error),
    ),
    # The magic number of a block follows the size of the blocks, a digit.
    Compression("bzip2", b"BZh", (".bz2",), bz2.BZ2File),
    Compression(
        "xz", b"\xfd7zXZ\x00", (".xz",), lzma.LZMAFile, (EOFError, OSError, lzma.LZMAError)
    ),
    Compression("zstd", b"\x28\xb5\x2f\xfd", (".zst", ".zstd"), _zstd),
)
_BLOCKS_OF_BZIP2 = (b"1AY&SY", b"\x17rE8P\x90")
_LONGEST_MAGIC = 10


def is_remote(path: str | os.PathLike) -> bool:
    """Whether a path is one that `tf.io.gfile` reads, such as gs://bucket/file."""
    return "://" in str(path)


def chunks_of(path: str) -> Iterator[bytes]:
    """Yields the content of a file in pieces, decompressed.

    A piece is at most as long as a line may be. gzip, bzip2, xz and zstd are recognized by the
    content.

    Args:
        path: A local path, or one that `tf.io.gfile` reads, such as gs://bucket/file.

    Raises:
        UserError: The file is missing, unreadable or damaged, or exceeds a limit.
    """
    with _named(path), opened(path) as file:
        yield from _chunks(path, file)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Makes an error of one line for a file that cannot be read."""
    require("\0" not in path, f"{path!r} is not a valid file name.")
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise UserError(f"{path}: expected a text file, found a directory.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from None


def opened(path: str) -> io.BufferedReader:
    """Opens a local or remote file."""
    return io.BufferedReader(_Remote(path)) if is_remote(path) else Path(path).open("rb")


def suffixes_of(path: str) -> list[str]:
    """The endings of a file's name in lower case, but for those of a compression."""
    packed = {suffix for compression in COMPRESSIONS for suffix in compression.suffixes}
    return [
        suffix.lower() for suffix in PurePosixPath(path).suffixes if suffix.lower() not in packed
    ]


def content_digest(path: str) -> str | None:
    """A checksum of a file as it is, or `None` for one that can be read only once, such as a pipe.

    Raises:
        UserError: The file is missing or unreadable.
    """
    with _named(path):
        if not is_remote(path) and not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def compression_of(begin: bytes) -> Compression | None:
    """The compression of a file by its first bytes; `None` for other files."""
    found = (one for one in COMPRESSIONS if begin.startswith(one.magic))
    compression = next(found, None)
    if compression and compression.name == "bzip2" and begin[4:10] not in _BLOCKS_OF_BZIP2:
        return None
    return compression


def _chunks(path: str, file: io.BufferedReader) -> Iterator[bytes]:
    """Pieces of a file, each checked against the limits before the next is read."""
    compression = compression_of(file.peek(_LONGEST_MAGIC))
    packed_size = None
    if not isinstance(file.raw, _Remote):
        status = os.fstat(file.fileno())
        packed_size = status.st_size if stat.S_ISREG(status.st_mode) else None
    endless = compression is not None or packed_size is None
    stream = compression.opened(file) if compression else file
    total = line = 0
    # No line within a piece is too long.
    size = min(_CHUNK_BYTES, LINE_BYTES.value)
    while chunk := _read_chunk(path, stream, size, compression):
        total += len(chunk)
        first_end, last_end = chunk.find(b"\n"), chunk.rfind(b"\n")
        LINE_BYTES.check(line + (first_end if first_end >= 0 else len(chunk)), path)
        line = len(chunk) - last_end - 1 if first_end >= 0 else line + len(chunk)
        if endless:
            DECOMPRESSED_BYTES.check(total, path)
        if compression and packed_size and total > _ALWAYS_READ:
            # Lines take more memory than their bytes, so highly compressed files are refused.
            COMPRESSION.check(total // packed_size, path)
        yield chunk


def _read_chunk(path: str, stream: Any, size: int, compression: Compression | None) -> bytes:
    try:
        return stream.read(size)
    except Exception as error:
        if compression is None or not isinstance(error, compression.errors):
            raise
        raise UserError(
            f"{path}: damaged or truncated {compression.name} file ({error})."
        ) from None


class _Remote(io.RawIOBase):
    """A file that `tf.io.gfile` reads."""

    def __init__(self, path: str):
        import tensorflow as tf

        super().__init__()
        with _errors_of_python():
            require(not tf.io.gfile.isdir(path), f"{path}: expected a file, found a directory.")
            self._file = tf.io.gfile.GFile(path, "rb")
            self._file.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _errors_of_python():
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _errors_of_python():
            self._file.seek(offset, whence)
            return self._file.tell()

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()


@contextlib.contextmanager
def _errors_of_python() -> Iterator[None]:
    """Turns errors of TensorFlow's file systems into those of Python's."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(str(error)) from None
    except tf.errors.OpError as error:
        raise OSError(error.message) from None

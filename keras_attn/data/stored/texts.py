"""Texts in memory-mapped files."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import Any, overload

import numpy as np

from keras_attn.data.stored.cache import Cache, Entry, EntryWriter, release
from keras_attn.data.stored.column import StoredColumn, key_of

_TEXTS_A_BLOCK = 4096
# Bytes that no UTF-8 has: before each text of a tuple, and before a tuple of numbers.
_TEXT, _NUMBERS = b"\xff", b"\xfe"


class StoredTexts(StoredColumn[str]):
    """Texts in memory-mapped files, each decoded when it is needed.

    Examples:
        >>> (texts,), _ = stored_columns(Cache("cache"), {"name": "made"}, [("cab",), ("bad",)], 1)
        >>> len(texts), texts[1], list(texts.take(np.array([1])))
        (2, 'bad', ['bad'])
    """

    def __init__(self, cache: Cache, entry: Entry, column: int, rows: np.ndarray | None = None):
        super().__init__(
            cache, entry.facts["digests"][column], entry.arrays[f"{column}.keys"], rows
        )
        self._entry, self._column = entry, column
        self._bytes = entry.arrays[f"{column}"]
        self._offsets = entry.arrays[f"{column}.offsets"]

    def of_rows(self, rows: np.ndarray | None) -> "StoredTexts":
        """Other texts of the column, by indices int64; all of them for `None`."""
        return StoredTexts(self.cache, self._entry, self._column, rows)

    @property
    def sizes(self) -> np.ndarray:
        """Length of each text in bytes, (texts,) int64."""
        sizes = np.diff(self._offsets)
        return sizes if self.rows is None else sizes[self.rows]

    def blocks(self, size: int = _TEXTS_A_BLOCK) -> Iterator[list[bytes]]:
        """Yields the texts as UTF-8, so many at a time."""
        for begin in range(0, len(self), size):
            yield self._encoded(slice(begin, begin + size))
            release(self._bytes)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [_decoded(text) for text in self._encoded(index)]
        # Raises IndexError, which ends a loop over a sequence.
        row = range(len(self))[index]
        return _decoded(self._encoded(slice(row, row + 1))[0])

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks():
            for text in block:
                yield _decoded(text)

    def _encoded(self, index: slice) -> list[bytes]:
        chosen = range(len(self))[index]
        if self.rows is None and chosen.step == 1:
            offsets = self._offsets[chosen.start : chosen.stop + 1].tolist()
            if len(offsets) < 2:
                return []
            first = offsets[0]
            data = self._bytes[first : offsets[-1]].tobytes()
            return [data[begin - first : end - first] for begin, end in pairwise(offsets)]
        rows = np.arange(chosen.start, chosen.stop, chosen.step)
        rows = rows if self.rows is None else self.rows[rows]
        begins, ends = self._offsets[rows].tolist(), self._offsets[rows + 1].tolist()
        return [self._bytes[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]


def stored_columns(
    cache: Cache,
    key: Mapping[str, Any],
    rows: Iterable[tuple[str, ...]],
    count: int,
    facts: Callable[[], Mapping[str, Any]] = dict,
) -> tuple[list[StoredTexts], Mapping[str, Any]]:
    """Opens columns of texts in a cache, or writes them.

    Args:
        cache: The cache.
        key: What the texts are read from, as JSON values.
        rows: The texts of each example, read if they are not in the cache.
        count: Number of texts of an example.
        facts: Returns what else the reading has found, as JSON values, at its end.

    Returns:
        The columns, and the facts.
    """

    def write(writer: EntryWriter) -> Mapping[str, Any]:
        digests = [hashlib.sha256() for _ in range(count)]
        remaining = iter(rows)
        while block := list(islice(remaining, _TEXTS_A_BLOCK)):
            for column, digest in enumerate(digests):
                _add_texts(writer, str(column), [_encoded(row[column]) for row in block], digest)
        return {**facts(), "digests": [digest.hexdigest() for digest in digests]}

    entry = cache.entry("texts", key, write)
    return [StoredTexts(cache, entry, column) for column in range(count)], entry.facts


def _encoded(text: Any) -> bytes:
    """A text, or a tuple of labels or numbers, as bytes."""
    if isinstance(text, str):
        return text.encode()
    if text and not isinstance(text[0], str):
        return _NUMBERS + np.array(text, np.float64).tobytes()
    return _TEXT + _TEXT.join(label.encode() for label in text)


def _decoded(data: bytes) -> Any:
    """What `_encoded` was called with."""
    kind, content = data[:1], data[1:]
    if kind == _NUMBERS:
        return tuple(np.frombuffer(content, np.float64).tolist())
    if kind == _TEXT:
        return tuple(label.decode() for label in content.split(_TEXT)) if content else ()
    return data.decode()


def _add_texts(writer: EntryWriter, name: str, texts: list[bytes], digest: Any) -> None:
    lengths = np.array([len(text) for text in texts], np.int64)
    data = b"".join(texts)
    digest.update(lengths.tobytes() + data)
    writer.add_rows(name, np.frombuffer(data, np.uint8), lengths)
    keys = b"".join([key_of(text) for text in texts])
    writer.add(f"{name}.keys", np.frombuffer(keys, np.uint64))

"""Base class of columns of data that are not in memory."""

import abc
import hashlib
from collections.abc import Sequence
from typing import Self, TypeVar

import numpy as np

from keras_attn.data.stored.cache import Cache

KEY_BYTES = 8

Value = TypeVar("Value", bound=str | bytes)


class StoredColumn(Sequence[Value]):
    """Values that are read from files when they are needed.

    Args:
        cache: The cache that they, or what is made of them, are in.
        digest: A checksum of all values of the column.
        keys: A number for each value, uint64, 64 bits of a hash: equal for equal values.
        rows: Which of the values these are, indices int64 (values,); `None` for all.
    """

    def __init__(self, cache: Cache, digest: str, keys: np.ndarray, rows: np.ndarray | None):
        self.cache, self.digest, self.rows = cache, digest, rows
        self._keys = keys

    @abc.abstractmethod
    def of_rows(self, rows: np.ndarray | None) -> Self:
        """Other rows of the column, by indices int64; all of them for `None`."""

    @property
    def whole(self) -> Self:
        """All values of the column."""
        return self.of_rows(None)

    @property
    def keys(self) -> np.ndarray:
        """A number for each value, uint64 (values,): equal for equal values."""
        return self._keys if self.rows is None else self._keys[self.rows]

    def take(self, rows: np.ndarray) -> Self:
        """Some of the values, by indices int64 (count,)."""
        return self.of_rows(rows if self.rows is None else self.rows[rows])

    def __len__(self) -> int:
        return len(self._keys) if self.rows is None else len(self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == one for mine, one in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


def key_of(value: bytes) -> bytes:
    """The key of a value, as bytes."""
    return hashlib.blake2b(value, digest_size=KEY_BYTES).digest()

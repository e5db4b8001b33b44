"""Folder of arrays that are made from data once, and read as memory-mapped files."""

import contextlib
import fcntl
import hashlib
import json
import math
import mmap
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.data.in_order import in_order
from keras_attn.documents import parse_json
from keras_attn.files import remove_unfinished, replaced_folder
from keras_attn.validation import UserError

ENTRY_FILE = "entry.json"
_LOCK = ".lock"
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Entry:
    """What a cache has for a key.

    Attributes:
        arrays: Memory-mapped arrays by name, which cannot be written to.
        facts: What else was found when they were made.
    """

    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]


class EntryWriter:
    """The arrays of an entry while they are made, as a context manager.

    Args:
        folder: The folder of the entry.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, dict[str, Any]] = {}
        self._files = contextlib.ExitStack()
        self._open: dict[str, Any] = {}

    def __enter__(self) -> "EntryWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, name: str, rows: np.ndarray) -> None:
        """Appends rows to an array.

        Args:
            name: Name of the array.
            rows: The rows, (count, …); type and further sizes are those of the first call.
        """
        if name not in self._open:
            self._open[name] = self._files.enter_context((self._folder / f"{name}.bin").open("wb"))
            shape = [0, *rows.shape[1:]]
            self._arrays[name] = {"dtype": rows.dtype.str, "shape": shape, "crc32": 0}
        about = self._arrays[name]
        data = np.ascontiguousarray(rows).data
        self._open[name].write(data)
        about["crc32"] = zlib.crc32(data, about["crc32"])
        about["shape"][0] += len(rows)

    def add_rows(self, name: str, values: np.ndarray, lengths: np.ndarray) -> None:
        """Appends rows of different lengths, to the arrays `name` and `name.offsets`.

        Args:
            name: Name of the array of all rows; where they begin and end is (rows + 1,) int64.
            values: The rows, concatenated.
            lengths: Their lengths, (count,).
        """
        if name not in self._open:
            self.add(f"{name}.offsets", np.zeros(1, np.int64))
            self.add(name, values[:0])
        end = self._arrays[name]["shape"][0]
        self.add(f"{name}.offsets", end + np.cumsum(lengths, dtype=np.int64))
        self.add(name, values)

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Writes what describes the arrays, at the end."""
        content = json.dumps({"arrays": self._arrays, "facts": facts})
        text = json.dumps({"content": content, "crc32": zlib.crc32(content.encode())})
        (self._folder / ENTRY_FILE).write_text(text, encoding="utf-8")


class Cache:
    """Folder of arrays that are made from data once, and read as memory-mapped files.

    Processes share it: one of them makes an entry while the others wait, under a temporary name
    until it is complete. An entry is checked by its checksums when it is opened, and made again if
    it is damaged. Everything in the folder can be deleted when no process uses it.

    Args:
        folder: The folder, which may not exist.
        report: Called with lines for users.

    Examples:
        >>> cache = Cache("cache")
        >>> def squares(writer):
        ...     writer.add("squares", np.arange(4) ** 2)
        ...     return {"largest": 9}
        >>> for _ in range(2):  # calls `squares` once
        ...     entry = cache.entry("squares", {"most": 4}, squares)
        >>> entry.arrays["squares"], entry.facts
        (array([0, 1, 4, 9]), {'largest': 9})
    """

    def __init__(self, folder: str | Path, report: Callable[[str], object] = print) -> None:
        self.folder = Path(folder)
        self._report = report

    def entry(
        self, kind: str, key: Mapping[str, Any], make: Callable[[EntryWriter], Mapping[str, Any]]
    ) -> Entry:
        """Opens an entry, or makes it.

        Args:
            kind: Beginning of its name.
            key: What it is made from, as JSON values.
            make: Writes the arrays, and returns facts about them, as JSON values.

        Raises:
            UserError: The folder cannot be written to.
            OSError: The disk is full.
        """
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
        folder = self.folder / f"{kind}-{name}"
        if folder.exists() and (found := _opened(folder)):
            return found
        with self._locked():
            if folder.exists():
                # Another process may have made it.
                if found := _opened(folder):
                    return found
                self._report(f"{folder}: damaged, it is made again.")
            with replaced_folder(folder) as temporary:
                with EntryWriter(temporary) as writer:
                    facts = make(writer)
                writer.describe(facts)
            found = _opened(folder, check=False)
        if found is None:
            raise OSError(f"{folder}: cannot be read after it was written.")
        return found

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Waits until no other process writes to the cache, and removes what a killed one left."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / _LOCK).open("ab")
        except OSError as error:
            raise UserError(
                f"The folder of the cache must be writable: {error.strerror}. "
                f"Received: {str(self.folder)!r}."
            ) from error
        with file:  # closing it releases the lock, and so does any end of the process
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._report(f"Waiting for another process that writes to {self.folder} …")
                fcntl.flock(file, fcntl.LOCK_EX)
            remove_unfinished(self.folder)
            yield


def release(array: np.ndarray) -> None:
    """Gives back the memory of an array that is a memory-mapped file.

    What is used again is read again, mostly from the cache of the operating system. An array in
    memory stays as it is.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _opened(folder: Path, check: bool = True) -> Entry | None:
    """The entry in a folder; `None` if it is damaged."""
    try:
        whole = parse_json((folder / ENTRY_FILE).read_text(encoding="utf-8"), ENTRY_FILE)
        content = whole["content"]
        if zlib.crc32(content.encode()) != whole["crc32"]:
            return None
        entry = parse_json(content, ENTRY_FILE)
        files = {name: folder / f"{name}.bin" for name in entry["arrays"]}
        if check:
            expected = [about["crc32"] for about in entry["arrays"].values()]
            if list(in_order(_checksum, files.values())) != expected:
                return None
        arrays = {
            name: _mapped(files[name], np.dtype(about["dtype"]), tuple(about["shape"]))
            for name, about in entry["arrays"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Entry(arrays, entry["facts"])


def _mapped(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if not math.prod(shape):
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", shape=shape).view(np.ndarray)


def _checksum(path: Path) -> int:
    digest = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_READ_BYTES):
            digest = zlib.crc32(chunk, digest)
    return digest

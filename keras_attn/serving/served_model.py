"""A model by name: which of its versions are there, which one answers, and the change to a new one.

As TensorFlow Serving does it by default, the highest version is served. A new one is loaded and
warmed up beside the old one, takes over at once, and the old one finishes what it has begun. One
that cannot be loaded changes nothing, and is tried again when its files have changed.
"""

import asyncio
import dataclasses
import enum
from collections.abc import Callable
from pathlib import Path

from keras_attn.export import CppSavedModel
from keras_attn.model_versions import version_folders
from keras_attn.serving.errors import Code, RequestError, invalid
from keras_attn.serving.loaded_version import LoadedVersion
from keras_attn.validation import UserError, require

_Fingerprint = list[tuple[str, int, int]]


class State(enum.IntEnum):
    """Where a version is in its life; the numbers of `GetModelStatus`."""

    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclasses.dataclass
class VersionStatus:
    """What is told of a version.

    Attributes:
        state: Where it is in its life.
        error: Why it could not be loaded; empty where it could.
    """

    state: State
    error: str = ""


class ServedModel:
    """The versions in a model's folder. All but loading happens in one event loop.

    Args:
        name: The name in requests.
        folder: Holds a folder for each version.
        load: From a version folder to its session; called in a thread.
        start: From a version's number and session to what answers requests.
        tell: Called with a line for whoever watches the server.

    Attributes:
        name: The name in requests.
        statuses: By version.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        load: Callable[[Path], CppSavedModel],
        start: Callable[[int, CppSavedModel], LoadedVersion],
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.name = name
        self.statuses: dict[int, VersionStatus] = {}
        self._folder = folder
        self._load = load
        self._start = start
        self._tell = tell
        self._current: LoadedVersion | None = None
        self._failed: tuple[int, _Fingerprint] | None = None
        self._retiring: set[asyncio.Task] = set()

    def version(self, number: int | None = None, label: str = "") -> LoadedVersion:
        """Returns what answers requests now.

        Args:
            number: The version that is asked for; the one that is served by default.
            label: The label that is asked for. There are none.

        Raises:
            RequestError: The version is not served.
        """
        if label:
            raise invalid(f"Unrecognized servable version label: {label}")
        if self._current is None or number not in (None, self._current.number):
            wanted = "Latest" if number is None else "Specific"
            which = self.name if number is None else f"{self.name}, {number}"
            raise RequestError(Code.NOT_FOUND, f"Servable not found for request: {wanted}({which})")
        return self._current

    async def open(self) -> None:
        """Loads the highest version.

        Raises:
            UserError: There is none, or it cannot be loaded.
        """
        require(
            bool(version_folders(self._folder)),
            "A model folder holds a folder for each version, named by a number, as "
            "`keras-attn export` writes it.",
            folder=str(self._folder),
        )
        await self.refresh()
        if self._current is None:
            raise UserError(next(iter(self.statuses.values())).error)

    async def watch(self, seconds: float) -> None:
        """Looks for changes of the folder, for ever."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
            except Exception as error:  # what is served goes on
                self._tell(f"{self.name}: looking for versions failed: {error!r}")

    async def refresh(self) -> None:
        """Changes to the highest version that is there, if it is another and can be loaded."""
        versions = await asyncio.to_thread(version_folders, self._folder)
        if not versions:
            return  # rather an old version than none
        number = max(versions)
        if self._current and self._current.number == number:
            return
        fingerprint = await asyncio.to_thread(_fingerprint, versions[number])
        if self._failed == (number, fingerprint):
            return
        await self._change(number, versions[number], fingerprint)

    async def close(self) -> None:
        """Answers what waits, and frees all versions."""
        old, self._current = self._current, None
        if old is not None:
            self._retire(old)
        await asyncio.gather(*self._retiring)

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return self._current.batcher.waiting if self._current else 0

    async def _change(self, number: int, folder: Path, fingerprint: _Fingerprint) -> None:
        self.statuses[number] = VersionStatus(State.LOADING)
        try:
            session = await asyncio.to_thread(self._load, folder)
        except UserError as error:
            self._failed = (number, fingerprint)
            self.statuses[number] = VersionStatus(State.END, str(error))
            self._tell(f"{self.name} version {number} cannot be loaded: {error}")
            return
        old, self._current = self._current, self._start(number, session)
        self.statuses[number] = VersionStatus(State.AVAILABLE)
        self._tell(f"{self.name} version {number} is served")
        if old is not None:
            self._retire(old)

    def _retire(self, version: LoadedVersion) -> None:
        self.statuses[version.number] = VersionStatus(State.UNLOADING)
        task = asyncio.create_task(self._unload(version))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _unload(self, version: LoadedVersion) -> None:
        await version.close()
        if self._current is None or self._current.number != version.number:
            self.statuses[version.number] = VersionStatus(State.END)


def _fingerprint(folder: Path) -> _Fingerprint:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stats = [(str(path), path.stat()) for path in files]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]

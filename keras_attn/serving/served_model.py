"""A served model: its versions, and the change to a new version.

The highest version is served, as by default in TensorFlow Serving. A new version is loaded and
warmed up before it replaces the old one, which finishes its running requests. A version that cannot
be loaded is ignored, and tried again when its files have changed.
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
    """State of a version, with the numbers of `GetModelStatus`."""

    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclasses.dataclass
class VersionStatus:
    """Status of a version.

    Attributes:
        state: The state.
        error: Why it could not be loaded; empty if it could.
    """

    state: State
    error: str = ""


class ServedModel:
    """The versions in a model's folder. Everything except loading happens in one event loop.

    Args:
        name: The name in requests.
        folder: Contains a folder for each version.
        load: Loads a version folder and returns its session; called in a thread.
        start: Makes a `LoadedVersion` of a version number and session.
        log: Called with each line of the server's log.

    Attributes:
        name: The name in requests.
        statuses: The status of each version.
    """

    def __init__(
        self,
        name: str,
        folder: str | Path,
        load: Callable[[Path], CppSavedModel],
        start: Callable[[int, CppSavedModel], LoadedVersion],
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.name = name
        self.statuses: dict[int, VersionStatus] = {}
        self._folder = folder
        self._load = load
        self._start = start
        self._log = log
        self._current: LoadedVersion | None = None
        self._failed: tuple[int, _Fingerprint] | None = None
        self._retiring: set[asyncio.Task] = set()

    def version(self, number: int | None = None, label: str = "") -> LoadedVersion:
        """Returns the version that answers requests.

        Args:
            number: The requested version; the served one by default.
            label: The requested label. Labels are not supported.

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
            UserError: There is no version, or it cannot be loaded.
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
        """Looks for changes of the folder, forever."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
            except Exception as error:  # the served version continues
                self._log(f"{self.name}: looking for versions failed: {error!r}")

    async def refresh(self) -> None:
        """Changes to the highest available version, if it is a new one and can be loaded."""
        versions = await asyncio.to_thread(version_folders, self._folder)
        if not versions:
            return  # an old version is better than none
        number = max(versions)
        if self._current and self._current.number == number:
            return
        fingerprint = await asyncio.to_thread(_fingerprint, versions[number])
        if self._failed == (number, fingerprint):
            return
        await self._change(number, versions[number], fingerprint)

    async def close(self) -> None:
        """Answers waiting requests, and frees all versions."""
        old, self._current = self._current, None
        if old is not None:
            self._retire(old)
        await asyncio.gather(*self._retiring)

    @property
    def waiting(self) -> int:
        """Number of waiting requests."""
        return self._current.batcher.waiting if self._current else 0

    async def _change(self, number: int, folder: Path, fingerprint: _Fingerprint) -> None:
        self.statuses[number] = VersionStatus(State.LOADING)
        try:
            session = await asyncio.to_thread(self._load, folder)
        except UserError as error:
            self._failed = (number, fingerprint)
            self.statuses[number] = VersionStatus(State.END, str(error))
            self._log(f"{self.name} version {number} cannot be loaded: {error}")
            return
        old, self._current = self._current, self._start(number, session)
        self.statuses[number] = VersionStatus(State.AVAILABLE)
        self._log(f"{self.name} version {number} is served")
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

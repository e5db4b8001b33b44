"""Restarts of a training after failures that another try may solve."""

import signal
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path

from keras_attn.processes import python_environment
from keras_attn.training.workers.cluster import TRY_AGAIN
from keras_attn.training.workers.end_with_parent import ending_with_parent

_ASKED_TO_END = {signal.SIGINT, signal.SIGTERM}
_TRIES_WITHOUT_PROGRESS = 5


def supervise(command: Sequence[str], checkpoints: Path, pause: float = 5.0) -> int:
    """Runs a command until it succeeds, fails for good, or makes no progress.

    It is run again if it lost a worker or was killed (out of memory, or by a crash), at most five
    times without a new checkpoint. SIGINT and SIGTERM are passed on, and end it.

    Args:
        command: The training, which continues its run when it is started again.
        checkpoints: The folder of its checkpoints.
        pause: Seconds between two tries.

    Returns:
        The status of the last try, as in shells.
    """
    tries = 0
    while True:
        before = _newest(checkpoints)
        with _Child(command) as child:
            status = child.wait()
        tries = tries + 1 if _newest(checkpoints) == before else 1
        if child.asked_to_end or not _may_be_mended(status):
            return status if status >= 0 else 128 - status
        if tries >= _TRIES_WITHOUT_PROGRESS:
            _say(f"ended with status {status}, {tries} tries without a checkpoint: giving up.")
            return status if status >= 0 else 128 - status
        why = ", perhaps for lack of memory" if status == -signal.SIGKILL else ""
        _say(f"ended with status {status}{why}: starting it again in {pause:g} s.")
        time.sleep(pause)


def _may_be_mended(status: int) -> bool:
    """Whether to try again: a negative status is the signal that killed the process."""
    return status == TRY_AGAIN or (status < 0 and -status not in _ASKED_TO_END)


def _newest(folder: Path) -> str | None:
    return max((path.name for path in folder.glob("step-*")), default=None)


def _say(line: str) -> None:
    print(f"keras-attn: training {line}", file=sys.stderr, flush=True)


class _Child:
    """A process to which SIGINT and SIGTERM are passed on."""

    def __init__(self, command: Sequence[str]) -> None:
        self.asked_to_end = False
        self._command = command
        self._before = {}

    def __enter__(self) -> "_Child":
        for number in _ASKED_TO_END:
            self._before[number] = signal.signal(number, self._pass_on)
        # In a group of its own, so that Ctrl-C reaches it once.
        self._process = subprocess.Popen(
            ending_with_parent(self._command), start_new_session=True, env=python_environment()
        )
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self) -> int:
        return self._process.wait()

    def _pass_on(self, number: int, frame: types.FrameType | None) -> None:
        self.asked_to_end = True
        self._process.send_signal(number)

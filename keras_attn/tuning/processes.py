"""Search with several processes on this machine: KerasTuner's chief and workers."""

import os
import socket
import subprocess
import time
from collections.abc import Sequence

from keras_attn.processes import python_environment
from keras_attn.training.workers.end_with_parent import ending_with_parent
from keras_attn.validation import UserError, is_port, require

_ROLE = "KERASTUNER_TUNER_ID"
_ADDRESS = "KERASTUNER_ORACLE_IP"
_PORT = "KERASTUNER_ORACLE_PORT"
# KerasTuner's chief checks every 20 seconds whether all workers have exited.
_SECONDS_FOR_THE_CHIEF = 60.0


def tuning_role() -> str:
    """Returns the role of this process in a search: `"alone"`, `"chief"` or `"worker"`.

    Raises:
        UserError: Only some of its variables are set, or the port is not a number.
    """
    variables = (_ROLE, _ADDRESS, _PORT)
    given = [name for name in variables if name in os.environ]
    if not given:
        return "alone"
    missing = [name for name in variables if not os.environ.get(name)]
    require(
        not missing,
        f"A search with several machines needs {', '.join(variables[:-1])} and {variables[-1]}.",
        missing=", ".join(missing),
    )
    port = os.environ[_PORT]
    require(is_port(port), f"{_PORT} must be a port.", **{_PORT: port})
    return "chief" if "chief" in os.environ[_ROLE] else "worker"


def chief_address() -> str:
    """Returns the address of the chief in KerasTuner's environment, as HOST:PORT."""
    return f"{os.environ[_ADDRESS]}:{os.environ[_PORT]}"


def run_chief_and_workers(command: Sequence[str], workers: int) -> int:
    """Runs a command as chief and as workers, until the chief exits.

    Args:
        command: A search.
        workers: Number of workers.

    Returns:
        The chief's status.

    Raises:
        UserError: A worker ended before the search; finished trials are kept.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    place = {_ADDRESS: "127.0.0.1", _PORT: str(port)}

    def start(role: str) -> subprocess.Popen:
        return subprocess.Popen(
            ending_with_parent(command), env=python_environment(**place, **{_ROLE: role})
        )

    chief = start("chief")
    others = [start(f"worker{number}") for number in range(workers)]
    try:
        _wait(chief, others)
        return chief.returncode
    finally:
        for process in (chief, *others):
            if process.poll() is None:
                process.terminate()
        for process in (chief, *others):
            process.wait()


def _wait(chief: subprocess.Popen, workers: Sequence[subprocess.Popen]) -> None:
    """Waits until the chief exits; raises a UserError if it would wait forever."""
    all_gone_since = None
    while chief.poll() is None:
        for number, worker in enumerate(workers):
            if worker.poll():
                raise UserError(
                    f"Worker {number} of the search ended with status {worker.returncode}. "
                    "Run the same command with --resume to continue."
                )
        if all(worker.poll() == 0 for worker in workers):
            all_gone_since = all_gone_since or time.monotonic()
            if time.monotonic() - all_gone_since > _SECONDS_FOR_THE_CHIEF:
                raise UserError("The chief of the search does not exit: run it with --resume.")
        time.sleep(0.2)

"""Commands that end when the process that started them ends for any reason.

Linux only; elsewhere a command keeps running.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

from keras_attn.processes import python_command

_PR_SET_PDEATHSIG = 1


def ending_with_parent(command: Sequence[str]) -> list[str]:
    """Changes a command so that it is killed when this process has ended.

    It is killed, so that its resources are free at once; a training continues from its last
    checkpoint later. The thread that starts it must live as long as it.

    Args:
        command: A program and its arguments.
    """
    return python_command(__name__, str(os.getpid()), *command)


def _run(parent: int, command: Sequence[str]) -> None:
    # In a program of its own: between fork and exec a process with threads may run no Python.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # which ended before this was asked for
            sys.exit(128 + signal.SIGKILL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _run(int(sys.argv[1]), sys.argv[2:])

"""Memory of the process."""

import contextlib
import ctypes


def return_free_memory() -> None:
    """Returns memory that is free to the system, where the C library can (glibc).

    It keeps much of what large arrays needed, which other parts of a process then cannot use.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)

"""Accelerators and memory."""

import contextlib
import functools
import importlib
import os
from pathlib import Path

import keras

_UNKNOWN = 16 * 2**30  # bytes
_LIMIT = Path("/sys/fs/cgroup/memory.max")


@functools.cache
def has_accelerator() -> bool:
    """Whether Keras sees a GPU or a TPU."""
    if keras.backend.backend() == "torch":  # where Keras lists no devices
        return importlib.import_module("torch").accelerator.is_available()
    kinds = {device.split(":")[0].lower() for device in keras.distribution.list_devices()}
    return bool(kinds & {"gpu", "cuda", "rocm", "tpu"})


@functools.cache
def memory_bytes() -> int:
    """The memory of an accelerator, or else of the machine or the container that this runs in."""
    backend = keras.backend.backend()
    if has_accelerator():
        if backend == "jax":
            devices = importlib.import_module("jax").local_devices()
            found = [(device.memory_stats() or {}).get("bytes_limit") for device in devices]
            return min((limit for limit in found if limit), default=_UNKNOWN)
        if backend == "torch" and importlib.import_module("torch").cuda.is_available():
            return importlib.import_module("torch").cuda.get_device_properties(0).total_memory
        return _UNKNOWN
    limits = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(_LIMIT.read_text()))
    return min(limits, default=_UNKNOWN)

"""Detects accelerators."""

import functools
import importlib

import keras


@functools.cache
def has_accelerator() -> bool:
    """Whether Keras sees a GPU or a TPU."""
    if keras.backend.backend() == "torch":  # where Keras lists no devices
        return importlib.import_module("torch").accelerator.is_available()
    kinds = {device.split(":")[0].lower() for device in keras.distribution.list_devices()}
    return bool(kinds & {"gpu", "cuda", "rocm", "tpu"})

"""What the program runs on."""

import functools

import keras


@functools.cache
def has_accelerator() -> bool:
    """Whether Keras sees a GPU or a TPU."""
    if not hasattr(keras.distribution, "list_devices"):
        return False
    kinds = {device.split(":")[0].lower() for device in keras.distribution.list_devices()}
    return bool(kinds & {"gpu", "cuda", "rocm", "tpu"})

"""Use of the CPU cores of one machine."""

import contextlib
import os

import tensorflow as tf

_MOST_SHARDS = 4


def resolve_shards(shards: int, jit: str, strategy: str) -> int:
    """The number of shards of a batch that 0 means.

    One per core, at most four, if one CPU computes without XLA; else 1. On two cores two shards
    take 0.78 of the time of one, and four are slower than two.
    """
    alone = strategy == "one" and jit == "off" and not tf.config.get_visible_devices("GPU")
    return shards or (min(_cores(), _MOST_SHARDS) if alone else 1)


def share_cores(shards: int) -> None:
    """Divides the cores between the shards of a batch, unless TensorFlow is initialized already."""
    if shards > 1:
        with contextlib.suppress(RuntimeError):
            tf.config.threading.set_intra_op_parallelism_threads(max(_cores() // shards, 1))
            tf.config.threading.set_inter_op_parallelism_threads(shards)


def _cores() -> int:
    return len(os.sched_getaffinity(0))

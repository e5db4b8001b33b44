"""How a training makes use of the cores of one machine."""

import contextlib
import os

import tensorflow as tf

_MOST_PARTS = 4


def resolve_parts(parts: int, jit: str, strategy: str) -> int:
    """The parts of a batch that 0 stands for.

    One for each core, four at the most, where one CPU computes without XLA; else 1. On two cores
    two parts take 0.78 of the time that one takes, and four are slower than two.
    """
    alone = strategy == "one" and jit == "off" and not tf.config.get_visible_devices("GPU")
    return parts or (min(_cores(), _MOST_PARTS) if alone else 1)


def share_cores(parts: int) -> None:
    """Shares the cores out to the parts of a batch, unless TensorFlow has begun already."""
    if parts > 1:
        with contextlib.suppress(RuntimeError):
            tf.config.threading.set_intra_op_parallelism_threads(max(_cores() // parts, 1))
            tf.config.threading.set_inter_op_parallelism_threads(parts)


def _cores() -> int:
    return len(os.sched_getaffinity(0))

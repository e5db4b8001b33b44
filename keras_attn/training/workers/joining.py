"""The start of all workers of a training, before TensorFlow does anything else."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from keras_attn.training.settings import TrainingSettings
from keras_attn.training.workers.cpu import share_cores
from keras_attn.training.workers.strategy import make_strategy
from keras_attn.training.workers.workers import Workers


@contextlib.contextmanager
def joined_workers(settings: TrainingSettings) -> Iterator[Workers]:
    """Joins the workers of a training, and reports it if one of them is lost.

    Args:
        settings: The settings of the training, in which nothing is left to be chosen.

    Yields:
        The workers.

    Raises:
        WorkerLost: Not all workers joined, or one of them was lost.
    """
    share_cores(settings.cpu_shards)
    workers = Workers(
        make_strategy(settings.strategy, settings.join_timeout, settings.heartbeat_timeout)
    )
    try:
        yield workers
    except tf.errors.OpError as error:
        if workers.workers == 1:
            raise
        raise workers.lost(error.message) from error

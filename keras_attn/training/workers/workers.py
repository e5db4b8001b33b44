"""Communication of several workers between updates, so that all decide alike."""

import contextlib
import json
import random
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.training.settings import TrainingSettings
from keras_attn.training.workers.cluster import Cluster, WorkerLost, why_lost
from keras_attn.training.workers.strategy import make_strategy, share_cores
from keras_attn.validation import UserError, require

# An exchange costs a message and its answer: often enough for a signal's grace time, seldom enough
# for updates of a few milliseconds.
_STEPS_BETWEEN = 10
# Files on a network's disk are seen by others after a while.
_SECONDS_TO_APPEAR = 5.0


class Workers:
    """The workers of a strategy; a single process is the only one of them.

    Every worker must make the same calls in the same order.

    Args:
        strategy: The strategy of the training.

    Attributes:
        workers: How many there are.
        index: Which of them this is.
        is_chief: Whether this is the one that writes the run folder.
        steps_between: Number of updates after which they exchange what only one may know.
        scope: Makes the scope of the strategy, under which models are built.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        cluster = Cluster.from_environment() if several else None
        self.workers = len(cluster.workers) if cluster else 1
        self.index = cluster.index if cluster else 0
        self.is_chief = self.index == 0
        self.steps_between = _STEPS_BETWEEN if self.workers > 1 else 1
        self._cluster = cluster
        self.scope = strategy.scope
        self._strategy = strategy
        self._sum = tf.function(self._summed) if self.workers > 1 else None

    def gather(self, values: Sequence[float]) -> np.ndarray:
        """The values of all workers, (workers, values) float64; they wait for each other."""
        own = np.asarray(values, np.float64)
        if self._sum is None:
            return own[np.newaxis]
        rows = np.zeros((self.workers, len(own)))
        rows[self.index] = own
        return self._sum(tf.constant(rows)).numpy()

    def from_chief(self, *mine: float) -> list[float]:
        """The chief's values, of the types that mine have."""
        values = self.gather(mine)[0]
        return [type(own)(value) for own, value in zip(mine, values, strict=True)]

    def all(self, mine: bool) -> bool:
        """Whether a condition holds for all workers."""
        return bool(self.gather([mine]).all())

    def require_equal(self, what: str, mine: int) -> None:
        """Raises a UserError unless all workers have the chief's number, such as a checksum."""
        numbers = self.gather([mine])[:, 0]
        others = np.flatnonzero(numbers != numbers[0]).tolist()
        require(
            not others,
            f"All workers must have the chief's {what}.",
            others=self._cluster.named(others) if others else None,
        )

    def require_equal_settings(self, settings: Mapping[str, Any]) -> None:
        """Raises a UserError that names the settings in which workers differ from the chief.

        Args:
            settings: Plain values by name; all workers have the same names.
        """
        names = sorted(settings)
        values = (json.dumps(settings[name], sort_keys=True).encode() for name in names)
        numbers = self.gather([zlib.crc32(value) for value in values])
        others = [
            f"worker {index} has another {', '.join(names[at] for at in np.flatnonzero(row))}"
            for index, row in enumerate(numbers != numbers[0])
            if row.any()
        ]
        if others:
            raise UserError(
                f"All workers must have the chief's settings. Received: {'; '.join(others)}."
            )

    def require_shared(self, folder: Path) -> None:
        """Raises a UserError unless all workers see the chief's folder."""
        if self.workers == 1:
            return
        (number,) = self.from_chief(random.SystemRandom().randrange(2**48))
        mark = folder / f".shared-{number:012x}"
        if self.is_chief:
            mark.touch()
        self.barrier()
        sees = self.gather([_appears(mark)])[:, 0]
        if self.is_chief:
            mark.unlink(missing_ok=True)
        blind = np.flatnonzero(sees == 0)
        if len(blind):
            raise UserError(
                "The run folder must be on a disk that all workers share: worker "
                f"{self._cluster.named(blind.tolist())} does not see the chief's. "
                f"Received: {str(folder)!r}."
            )

    def barrier(self) -> None:
        """Waits for all workers."""
        self.gather([0.0])

    def lost(self, message: str) -> WorkerLost:
        """Names the worker that was lost, after an error in work with the others."""
        return WorkerLost(why_lost(self._cluster, message))

    def _summed(self, rows: tf.Tensor) -> tf.Tensor:
        def replica(rows: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            local = context.num_replicas_in_sync // self.workers
            first = context.replica_id_in_sync_group % local == 0
            mine = tf.where(first, rows, tf.zeros_like(rows))
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        results = self._strategy.run(replica, args=(rows,))
        return self._strategy.experimental_local_results(results)[0]


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


def _appears(path: Path) -> bool:
    """Whether a file exists, or appears within a few seconds."""
    deadline = time.monotonic() + _SECONDS_TO_APPEAR
    while not path.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True

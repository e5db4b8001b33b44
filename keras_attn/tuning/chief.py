"""Waiting of a worker for its chief, with a time limit."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
from keras_tuner.src.distribute import oracle_client

from keras_attn.training.reporting.progress import say
from keras_attn.training.workers.cluster import WorkerLost
from keras_attn.tuning.processes import chief_address


@contextlib.contextmanager
def led_by_the_chief(search: Path, seconds: float) -> Iterator[None]:
    """Waits for the chief's search to begin, and limits the time of its answers.

    Args:
        search: The file that describes the search, which the chief writes.
        seconds: The time limit.

    Raises:
        WorkerLost: The search does not begin, or the chief does not answer.
    """
    address = chief_address()
    say(f"Waiting up to {seconds:g} s for the chief at {address}.")
    deadline = time.monotonic() + seconds
    while not search.is_file():
        if time.monotonic() > deadline:
            raise WorkerLost(
                f"The chief at {address} did not begin the search within {seconds:g} s: "
                f"{search}, which must be on a shared disk, is missing."
            )
        time.sleep(0.2)
    before, oracle_client.TIMEOUT = oracle_client.TIMEOUT, seconds
    try:
        yield
    except grpc.RpcError as error:
        raise WorkerLost(
            f"The chief at {address} could not be reached for {seconds:g} s: {error.details()}."
        ) from error
    finally:
        oracle_client.TIMEOUT = before

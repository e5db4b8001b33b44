"""The wait of a worker for its chief, with a time limit."""

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
    """Waits for the chief's search to begin, and limits the wait for its answers.

    Args:
        search: The file search.yaml, which the chief writes.
        seconds: Seconds to wait.

    Raises:
        WorkerLost: The search does not begin, or the chief does not answer.
    """
    address = chief_address()
    say(f"Waiting for the chief at {address}, {seconds:g} s at the most.")
    deadline = time.monotonic() + seconds
    while not search.is_file():
        if time.monotonic() > deadline:
            raise WorkerLost(
                f"The chief at {address} did not begin the search within {seconds:g} s: there is "
                f"no {search}, which all workers must see."
            )
        time.sleep(0.2)
    before, oracle_client.TIMEOUT = oracle_client.TIMEOUT, seconds
    try:
        yield
    except grpc.RpcError as error:
        raise WorkerLost(
            f"The chief at {address} cannot be reached, for {seconds:g} s: {error.details()}."
        ) from error
    finally:
        oracle_client.TIMEOUT = before

"""Batching of simultaneous requests.

Each version of a model has a queue. A free thread takes the first request, together with all others
of the same signature whose arrays have the same shape apart from their number of rows, up to a
number of rows. So nothing is padded, and requests do not wait for others unless a delay is set. A
batch that fails is run again in halves, until only the invalid requests have failed.
"""

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from keras_attn.export.runtime import Signature
from keras_attn.serving.errors import Code, RequestError

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class BatchSettings:
    """Settings of batching.

    Attributes:
        rows: Most rows of a batch of several requests; 1 runs every request separately.
        delay: Seconds that an incomplete batch waits for more requests.
        threads: Batches of one model that run at the same time.
        queue: Most waiting requests.

    Examples:
        >>> batching = BatchSettings(rows=32, delay=0.005)  # waits 5 ms for up to 32 rows
        >>> server = Server({"reviews": "exported/reviews"}, settings=ModelSettings(batching))
    """

    rows: int = 64
    delay: float = 0.0
    threads: int = 1
    queue: int = 512


@dataclasses.dataclass(eq=False)
class _Waiting:
    group: Any  # what may be in one batch with it; None: nothing
    signature: str
    inputs: Arrays
    rows: int
    since: float
    answer: asyncio.Future


def can_batch(signature: Signature) -> bool:
    """Returns whether rows are independent: dimension 0 of all tensors is of unknown size."""
    tensors = (*signature.inputs.values(), *signature.outputs.values())
    return bool(signature.inputs) and all(
        tensor.shape and tensor.shape[0] is None for tensor in tensors
    )


class Batcher:
    """The queue of one version of a model. Everything except `run` happens in one event loop.

    Args:
        signatures: The signatures by name.
        run: Called in a thread with a signature's name and its inputs; returns the outputs, or
            raises a `RequestError`.
        settings: Settings of batching.
        observe: Called with the number of rows of each batch.
    """

    def __init__(
        self,
        signatures: Mapping[str, Signature],
        run: Callable[[str, Arrays], Arrays],
        settings: BatchSettings,
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._batched = {name for name, signature in signatures.items() if can_batch(signature)}
        self._run = run
        self._settings = settings
        self._observe = observe
        self._queue: collections.deque[_Waiting] = collections.deque()
        self._threads = ThreadPoolExecutor(settings.threads, "batches")
        self._running: set[asyncio.Task] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Number of requests in the queue."""
        return len(self._queue)

    async def predict(self, signature: str, inputs: Arrays, timeout: float) -> Arrays:
        """Runs a request, possibly in a batch with others.

        Args:
            signature: Its signature's name.
            inputs: Arrays that fit the signature.
            timeout: Seconds after which the request fails.

        Returns:
            The outputs for its rows.

        Raises:
            RequestError: The queue is full, the request timed out, or the model refuses the inputs.
        """
        if self._closed:
            raise RequestError(Code.UNAVAILABLE, "The model is being unloaded.")
        if len(self._queue) >= self._settings.queue:
            self._drop_abandoned()
        if len(self._queue) >= self._settings.queue:
            raise RequestError(
                Code.RESOURCE_EXHAUSTED, f"{len(self._queue)} requests are already waiting."
            )
        loop = asyncio.get_running_loop()
        group, rows = self._group(signature, inputs)
        waiting = _Waiting(group, signature, inputs, rows, loop.time(), loop.create_future())
        self._queue.append(waiting)
        self._idle.clear()
        self._start()
        try:
            async with asyncio.timeout(timeout):
                return await waiting.answer
        except TimeoutError:
            raise RequestError(
                Code.DEADLINE_EXCEEDED, f"There was no answer within {timeout:.3g} s."
            ) from None

    async def close(self) -> None:
        """Runs waiting requests and accepts no new ones."""
        self._closed = True
        self._start()
        await self._idle.wait()
        self._threads.shutdown()

    def _group(self, signature: str, inputs: Arrays) -> tuple[Any, int]:
        sizes = {array.shape[0] if array.ndim else None for array in inputs.values()}
        rows = next(iter(sizes), None) or 0
        if signature not in self._batched or len(sizes) != 1 or not rows:
            return None, rows
        shapes = tuple((name, array.shape[1:]) for name, array in sorted(inputs.items()))
        return (signature, shapes), rows

    def _drop_abandoned(self) -> None:
        kept = [waiting for waiting in self._queue if not waiting.answer.done()]
        self._queue = collections.deque(kept)

    def _start(self) -> None:
        self._drop_abandoned()
        while self._queue and len(self._running) < self._settings.threads:
            batch = self._take()
            if batch is None:
                return
            task = asyncio.create_task(self._answer(batch))
            self._running.add(task)
            task.add_done_callback(self._finished)
        if not self._queue and not self._running:
            self._idle.set()

    def _finished(self, task: asyncio.Task) -> None:
        self._running.discard(task)
        self._start()

    def _take(self) -> list[_Waiting] | None:
        """Takes the next batch out of the queue; None if it still waits for more requests."""
        batch, others, rows = [], collections.deque(), 0
        for waiting in self._queue:
            fits = not batch or (
                waiting.group == batch[0].group is not None
                and rows + waiting.rows <= self._settings.rows
            )
            (batch if fits else others).append(waiting)
            rows += waiting.rows if fits else 0
        if batch[0].group and rows < self._settings.rows and not self._closed:
            loop = asyncio.get_running_loop()
            left = batch[0].since + self._settings.delay - loop.time()
            if left > 0:
                loop.call_later(left, self._start)
                return None
        self._queue = others
        return batch

    async def _answer(self, batch: list[_Waiting]) -> None:
        rows = sum(waiting.rows for waiting in batch)
        loop = asyncio.get_running_loop()
        try:
            outputs = await loop.run_in_executor(
                self._threads, self._run, batch[0].signature, _together(batch)
            )
            self._observe(rows)
            answers = [outputs] if len(batch) == 1 else _split(outputs, batch, rows)
        except RequestError as error:
            if len(batch) > 1:
                half = len(batch) // 2
                await self._answer(batch[:half])
                await self._answer(batch[half:])
                return
            answers = [error]
        except Exception as error:  # waiting requests must get any error
            answers = [RequestError(Code.INTERNAL, f"{type(error).__name__} in the server.")]
            answers *= len(batch)
        for waiting, answer in zip(batch, answers, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(answer, RequestError):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)


def _together(batch: list[_Waiting]) -> Arrays:
    first = batch[0].inputs
    if len(batch) == 1:
        return first
    return {name: np.concatenate([waiting.inputs[name] for waiting in batch]) for name in first}


def _split(outputs: Arrays, batch: list[_Waiting], rows: int) -> list[Arrays]:
    if any(array.shape[0] != rows for array in outputs.values()):
        raise RequestError(
            Code.INTERNAL, "The model's outputs must have as many rows as its inputs."
        )
    answers, start = [], 0
    for waiting in batch:
        stop = start + waiting.rows
        answers.append({name: array[start:stop] for name, array in outputs.items()})
        start = stop
    return answers

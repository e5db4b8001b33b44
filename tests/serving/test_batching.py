"""The queue in front of a model, with a model that only writes down what it was asked."""

import asyncio
import threading

import numpy as np
import pytest

from keras_attn.export.runtime import Signature, SignatureTensor
from keras_attn.serving.batching import Batcher, BatchSettings, can_batch
from keras_attn.serving.errors import Code, RequestError

pytestmark = pytest.mark.tensorflow


def tensor(*shape, dtype="int64"):
    return SignatureTensor("x:0", np.dtype(dtype), shape)


SIGNATURES = {
    "double": Signature({"x": tensor(None, None)}, {"y": tensor(None, None)}),
    "other": Signature({"x": tensor(None, None)}, {"y": tensor(None, None)}),
    "scalar": Signature({"x": tensor()}, {"y": tensor()}),
}


class Model:
    """Doubles what it gets; refuses 13; waits while the gate is closed."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, signature, inputs):
        self.gate.wait(20)
        x = inputs["x"]
        self.batches.append((signature, x.ravel().tolist()))
        if (x == 13).any():
            raise RequestError(Code.INVALID_ARGUMENT, "13 is refused.")
        if (x == 17).any():
            raise ZeroDivisionError
        return {"y": 2 * x}


def column(*values):
    return {"x": np.array(values)[:, None]}


def run(scenario, **settings):
    async def main():
        model = Model()
        batcher = Batcher(SIGNATURES, model, BatchSettings(**settings))
        await scenario(model, batcher)
        model.gate.set()
        await asyncio.wait_for(batcher.close(), 20)
        with pytest.raises(RequestError, match="being unloaded"):
            await batcher.predict("double", column(1), 5)

    asyncio.run(main())


async def hold(model, batcher):
    """Closes the gate, and lets one request wait behind it, so that others queue up."""
    model.gate.clear()
    first = asyncio.ensure_future(batcher.predict("double", column(100), 20))
    await asyncio.sleep(0.02)
    return first


async def queued(batcher, *requests, name="double", timeout=20):
    """Requests that wait in the queue."""
    waiting = [asyncio.ensure_future(batcher.predict(name, x, timeout)) for x in requests]
    await asyncio.sleep(0)
    return waiting


def test_requests_that_wait_are_one_batch_and_each_gets_its_rows():
    async def scenario(model, batcher):
        first = await hold(model, batcher)
        rest = await queued(batcher, column(1), column(2, 3), column(5, 7, 11))
        assert batcher.waiting == 3
        model.gate.set()
        answers = [answer["y"].ravel().tolist() for answer in await asyncio.gather(first, *rest)]
        assert answers == [[200], [2], [4, 6], [10, 14, 22]]
        assert model.batches == [("double", [100]), ("double", [1, 2, 3, 5, 7, 11])]

    run(scenario)


def test_a_batch_has_a_largest_number_of_rows():
    async def scenario(model, batcher):
        first = await hold(model, batcher)
        rest = await queued(batcher, column(1, 2), column(3, 4), column(5), column(6, 7, 8, 9))
        model.gate.set()
        await asyncio.gather(first, *rest)
        # The third fits where the second did not; the last is larger than a batch, and alone.
        assert [x for _, x in model.batches[1:]] == [[1, 2, 5], [3, 4], [6, 7, 8, 9]]

    run(scenario, rows=3)


def test_only_like_is_batched_with_like():
    async def scenario(model, batcher):
        first = await hold(model, batcher)
        asked = [
            ("double", column(1)),
            ("other", column(2)),
            ("double", {"x": np.array([[3, 3]])}),
            ("scalar", {"x": np.array(4)}),
            ("scalar", {"x": np.array(5)}),
            ("double", column(6)),
        ]
        rest = [one for name, x in asked for one in await queued(batcher, x, name=name)]
        model.gate.set()
        answers = await asyncio.gather(first, *rest)
        assert [answer["y"].ravel().tolist() for answer in answers[1:]] == [
            [2], [4], [6, 6], [8], [10], [12],
        ]  # fmt: skip
        assert model.batches[1:] == [
            ("double", [1, 6]),
            ("other", [2]),
            ("double", [3, 3]),
            ("scalar", [4]),
            ("scalar", [5]),
        ]

    run(scenario)


def test_a_request_that_is_refused_fails_alone():
    async def scenario(model, batcher):
        first = await hold(model, batcher)
        values = [1, 2, 13, 4, 5, 13, 7, 8]
        rest = await queued(batcher, *map(column, values))
        model.gate.set()
        answers = await asyncio.gather(first, *rest, return_exceptions=True)
        for value, answer in zip(values, answers[1:], strict=True):
            if value == 13:
                assert answer.code == Code.INVALID_ARGUMENT
            else:
                assert answer["y"].item() == 2 * value
        # After the first: all 8, 4 and 4, [1, 2], [13, 4], [5, 13], [7, 8], and four alone.
        assert len(model.batches) == 1 + 1 + 2 + 4 + 4

    run(scenario)


def test_a_mistake_in_the_server_is_told_to_those_who_wait():
    async def scenario(model, batcher):
        with pytest.raises(RequestError, match="ZeroDivisionError") as raised:
            await batcher.predict("double", column(17), 5)
        assert raised.value.code == Code.INTERNAL
        assert (await batcher.predict("double", column(1), 5))["y"].item() == 2

    run(scenario)


def test_outputs_that_are_no_rows_are_not_cut():
    async def scenario(model, batcher):
        batcher._run = lambda signature, inputs: {"y": np.arange(5)}
        one, two = await asyncio.gather(
            batcher.predict("double", column(1), 5), batcher.predict("double", column(2), 5)
        )
        assert one["y"].tolist() == two["y"].tolist() == [0, 1, 2, 3, 4]

    run(scenario, delay=0.05)


def test_the_queue_is_bounded_and_a_request_has_its_time():
    async def scenario(model, batcher):
        first = await hold(model, batcher)
        rest = await queued(batcher, column(1), column(2), timeout=0.1)
        with pytest.raises(RequestError, match="2 requests are already waiting") as raised:
            await batcher.predict("double", column(3), 5)
        assert raised.value.code == Code.RESOURCE_EXHAUSTED
        for request in rest:
            with pytest.raises(RequestError, match=r"no answer within 0.1 s") as raised:
                await request
            assert raised.value.code == Code.DEADLINE_EXCEEDED
        # What was given up makes room, and is never run.
        (last,) = await queued(batcher, column(5))
        model.gate.set()
        await asyncio.gather(first, last)
        assert [x for _, x in model.batches] == [[100], [5]]

    run(scenario, queue=2)


def test_a_batch_waits_for_company_if_told_to():
    async def scenario(model, batcher):
        loop = asyncio.get_running_loop()
        start = loop.time()
        one = await queued(batcher, column(1))
        await asyncio.sleep(0.02)
        await asyncio.gather(*one, *await queued(batcher, column(2)))
        assert model.batches == [("double", [1, 2])]
        assert loop.time() - start >= 0.1

    run(scenario, delay=0.1)


def test_closing_finishes_what_waits():
    async def scenario(model, batcher):
        first = await hold(model, batcher)
        (second,) = await queued(batcher, column(2))
        closing = asyncio.ensure_future(batcher.close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        model.gate.set()
        await closing
        assert (await first)["y"].item() == 200
        assert (await second)["y"].item() == 4

    run(scenario, delay=5.0)


def test_which_signatures_have_rows():
    assert can_batch(SIGNATURES["double"])
    assert not can_batch(SIGNATURES["scalar"])
    assert not can_batch(Signature({"x": tensor(4)}, {"y": tensor(None)}))
    assert not can_batch(Signature({"x": tensor(None)}, {"y": tensor()}))
    unknown_rank = SignatureTensor("x:0", np.dtype("int64"), None)
    assert not can_batch(Signature({"x": unknown_rank}, {"y": tensor(None)}))
    assert not can_batch(Signature({}, {"y": tensor(None)}))

"""Hostile requests get the answer of their kind, and good ones beside them get theirs."""

import asyncio
import collections
import json
import resource

import grpc
import numpy as np
import pytest

from keras_attn.benchmarks.http_load import post, put_load
from tests.serving.hostile import GRPC, PATHS, REST, SLOW, http
from tests.serving.http import send

pytestmark = pytest.mark.tensorflow

CLIENTS = 8
METHOD = "/tensorflow.serving.PredictionService/Predict"


async def ask_all(served, kinds):
    """Sends a request of each kind in a list, seeded by its position; returns what came back."""
    answers = [None] * len(kinds)
    positions = iter(range(len(kinds)))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
        call = channel.unary_unary(METHOD)  # bytes to bytes

        async def client():
            for position in positions:
                kind = kinds[position]
                rng = np.random.default_rng([7, position])
                if kind in REST:
                    answers[position] = await send(served.rest, REST[kind][0](rng))
                    continue
                try:
                    body = await call(GRPC[kind][0](rng), timeout=30)
                    answers[position] = ("OK", body)
                except grpc.aio.AioRpcError as error:
                    answers[position] = (error.code().name, (error.details() or "").encode())

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return answers


def check(served, kinds):
    answers = asyncio.run(ask_all(served, kinds))
    counts, wrong = collections.Counter(), []
    for position, (kind, (status, body)) in enumerate(zip(kinds, answers, strict=True)):
        counts[kind, status] += 1
        expected = (REST | GRPC)[kind][1]
        if status not in (expected if isinstance(expected, tuple) else (expected,)):
            wrong.append((position, kind, status, body[:200]))
        for trace in (b"Traceback", b'File "', b"node"):
            assert trace not in body, (kind, body)
        if kind in REST and status not in ("closed", 200) and body[:1] == b"{":
            assert list(json.loads(body)) == ["error"], (kind, body)
    assert not wrong, wrong[:10]
    for position, kind in enumerate(kinds):
        if kind == "good":  # unharmed: the answer that it gets alone
            request = REST[kind][0](np.random.default_rng([7, position]))
            _, alone = asyncio.run(send(served.rest, request))
            assert _texts(answers[position][1]) == _texts(alone)
    return counts


def _texts(body):
    return [row["text"] for row in json.loads(body)["predictions"]]


def test_every_kind_of_hostile_request(served):
    kinds = [*REST, *GRPC] * 3
    counts = check(served, kinds)
    assert sum(counts.values()) == len(kinds)
    assert len({kind for kind, _ in counts}) >= 12 + 2


@pytest.mark.parametrize(("path", "status"), PATHS.items())
def test_paths_are_names_and_nothing_else(served, path, status):
    assert asyncio.run(send(served.rest, http(b'{"instances": ["a"]}', path)))[0] == status


@pytest.mark.slow
def test_ten_thousand_hostile_requests(served):
    rng = np.random.default_rng(11)
    quick = sorted((set(REST) | set(GRPC)) - SLOW)
    kinds = [str(kind) for kind in rng.choice(quick, 9_800)]
    kinds += [str(kind) for kind in rng.choice(sorted(SLOW), 200)]
    rng.shuffle(kinds)
    counts = check(served, kinds)
    for (kind, status), count in sorted(counts.items(), key=str):
        print(f"{kind:26} {status!s:20} {count}")
    assert sum(counts.values()) == 10_000


@pytest.mark.slow
def test_a_hundred_thousand_requests_take_no_memory(served):
    """The peak of this process, which is server and client."""
    request = post("/v1/models/toy:predict", b'{"instances": ["abc", "e"]}')

    def peak(requests):
        load = asyncio.run(put_load(served.rest, [request], CLIENTS, seconds=3000, most=requests))
        assert (len(load.latencies), load.failed) == (requests, 0)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = peak(5_000)
    after = peak(100_000)
    print(f"peak {before / 1024:.0f} MiB after 5,000 requests, {after / 1024:.0f} after 105,000")
    assert after < 1.05 * before

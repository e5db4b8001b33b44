"""`benchmark serve` starts servers, puts load on them, ends them, and prints what it took."""

import json

import numpy as np
import pytest

from keras_attn.benchmarks.http_load import Load
from keras_attn.export import export_saved_model
from tests.cli.conftest import keras_attn  # noqa: F401
from tests.export.toy import ToyTask

pytestmark = pytest.mark.tensorflow


def test_figures_of_a_load():
    load = Load(2.0, np.arange(1, 102) / 1000, failed=3)
    assert load.figures() == {
        "requests_per_second": 50.5,
        "p50_ms": 51.0,
        "p99_ms": 100.0,
        "requests": 101,
        "failed": 3,
    }


@pytest.mark.slow
def test_benchmark_serve(keras_attn, tmp_path):  # noqa: F811
    export_saved_model(ToyTask(), tmp_path / "toy", n_best=2)
    options = ("--clients", "1", "3", "--threads", "1", "--seconds", "0.5", "--direct-calls", "9")
    output = keras_attn.output("benchmark", "serve", tmp_path / "toy", *options)
    *loads, overhead = [json.loads(line) for line in output.splitlines()]
    assert [(load["batching"], load["clients"]) for load in loads] == [
        (False, 1),
        (False, 3),
        (True, 1),
        (True, 3),
    ]
    assert all(load["failed"] == 0 < load["requests"] for load in loads)
    assert overhead["calls"] == 9
    assert 0 < overhead["direct_p50_ms"] < overhead["rest_p50_ms"]

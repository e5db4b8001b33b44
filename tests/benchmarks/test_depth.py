import pytest

from keras_attn.benchmarks import depth
from keras_attn.benchmarks.depth import KINDS, depth_table, measure_depth
from tests.harness import numbers
from tests.refusals import refused

SETTINGS = {"workload": "depth", "blocks": 2, "length": 20, "width": depth.WIDTH}


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    def measure(settings):
        size = settings["blocks"] * (settings["length"] + 16) * 1e6
        return {"seconds": float(settings["length"]), "peak_bytes": size}

    monkeypatch.setattr(depth, "measure_in_a_process", measure)


def test_blocks_of_the_three_kinds_compute_one_output():
    x = numbers(1, 1, 20, depth.WIDTH)
    for kind in KINDS:
        settings = SETTINGS | {"kind": kind}
        assert depth.call_layer(depth.make_layer(settings), x, settings).shape == x.shape


def test_a_table_of_what_was_measured():
    rows = depth_table(list(measure_depth([1, 4], length=32))).splitlines()
    assert rows[0] == "| blocks | 1 | 4 |"
    assert rows[4] == "| reversible | 32 s, 30 MB | 32 s, 120 MB |"


def test_what_failed_stands_in_the_table():
    figures = [figure | {"error": "exit status 1"} for figure in measure_depth([1])]
    assert depth_table(figures).splitlines()[2] == "| usual | exit status 1 |"


@pytest.mark.parametrize("wrong", [{"blocks": [0]}, {"length": 15}])
def test_mistakes_are_told(wrong):
    refused("Received: ", list, measure_depth(**wrong))

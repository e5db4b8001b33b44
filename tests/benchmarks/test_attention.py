import json

import pytest

from keras_attn.benchmarks.attention import measure_attention
from keras_attn.benchmarks.mechanisms import MECHANISMS, Measured
from keras_attn.layers.attention.registry import ATTENTION
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


@pytest.mark.slow
def test_every_figure_comes_from_its_own_process():
    figures = list(measure_attention([600], ["dense", "compressive_memory"], repeats=1))
    assert [figure["mechanism"] for figure in figures] == ["dense", "compressive_memory"]
    for figure in figures:
        assert figure["backend"] == "tensorflow"
        assert figure["length"] == 600
        assert 0 < figure["seconds"] < 60
        assert figure["peak_bytes"] >= 0
        assert json.loads(json.dumps(figure)) == figure


def test_operations_of_dense_attention():
    """Multiplications and additions of four projections and two products of all pairs."""
    (figure,) = measure_attention([2_000_000], ["dense"])
    n, d = 2_000_000, 512
    assert figure["operations"] == 2 * (4 * n * d * d + 2 * n * n * d)
    assert figure["error"].startswith("needs about 512000 GB")


def test_what_cannot_be_causal_is_left_out(monkeypatch):
    for name in MECHANISMS:
        measured = Measured(None, lambda n: 0.0, lambda n: 1e15, MECHANISMS[name].causal)
        monkeypatch.setitem(MECHANISMS, name, measured)
    names = {figure["mechanism"] for figure in measure_attention([8], causal=True)}
    others = {"global_local", "longformer", "big_bird", "sinkhorn", "linformer", "nystrom"}
    assert names == set(MECHANISMS) - others


@pytest.mark.slow
def test_a_failing_process_is_told():
    (figure,) = measure_attention([513], ["lsh"], precision="float99", repeats=1)
    assert "exit status 1" in figure["error"]


def test_mistakes_are_told():
    refused("mechanism.*Received: mechanism='full'", list, measure_attention([8], ["full"]))
    refused("Received: length=0", list, measure_attention([0]))
    with pytest.raises(UserError, match="global_local does not support causal"):
        list(measure_attention([8], ["dense", "global_local"], causal=True))


def test_every_named_mechanism_has_a_theoretical_cost():
    assert set(ATTENTION) <= set(MECHANISMS)

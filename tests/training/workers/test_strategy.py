"""Which strategy is taken."""

import pytest

from keras_attn.training.workers.cluster import Cluster
from keras_attn.training.workers.strategy import resolve_strategy
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["one", "mirrored", "tpu"])
def test_workers_are_not_left_alone_by_another_strategy(monkeypatch, name):
    monkeypatch.setenv("TF_CONFIG", "")  # so that what is set below is taken back
    Cluster(("a:1", "b:2"), 0).to_environment()
    refused(f"must be 'multi_worker' or 'auto'.*strategy='{name}'", resolve_strategy, name)
    assert resolve_strategy("auto") == resolve_strategy("multi_worker") == "multi_worker"


def test_one_process_takes_what_it_is_told(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")
    assert resolve_strategy("auto") == "one"
    Cluster(("a:1",), 0).to_environment()
    assert [resolve_strategy(name) for name in ("one", "mirrored")] == ["one", "mirrored"]

import os

import pytest

from keras_attn.training.workers.strategy import resolve_shards
from tests.training.module_process import run_module

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(("cores", "shards"), [(1, 1), (2, 2), (16, 4)])
def test_a_shard_for_each_core_but_four_at_the_most(monkeypatch, cores, shards):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    assert resolve_shards(0, "off", "one") == shards


def test_one_shard_where_cores_are_used_otherwise():
    assert resolve_shards(0, "on", "one") == 1
    assert resolve_shards(0, "off", "mirrored") == 1


def test_a_number_that_is_set_stays():
    assert resolve_shards(3, "on", "mirrored") == 3


@pytest.mark.slow
@pytest.mark.parametrize(("shards", "expected"), [(2, [1, 2]), (1, [0, 0])])
def test_threads_of_a_process(shards, expected):
    assert run_module("tests.training.shared_cores", str(shards), timeout=120)[0] == expected

import os

import pytest

from keras_attn.training.workers.cpu import resolve_parts
from tests.training.module_process import run_module

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(("cores", "parts"), [(1, 1), (2, 2), (16, 4)])
def test_a_part_for_each_core_but_four_at_the_most(monkeypatch, cores, parts):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    assert resolve_parts(0, "off", "one") == parts


def test_one_part_where_cores_are_used_otherwise():
    assert resolve_parts(0, "on", "one") == 1
    assert resolve_parts(0, "off", "mirrored") == 1


def test_parts_that_are_told_stay():
    assert resolve_parts(3, "on", "mirrored") == 3


@pytest.mark.parametrize(
    ("parts", "expected"), [(2, [1, 2]), pytest.param(1, [0, 0], marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_threads_of_a_process(parts, expected):
    assert run_module("tests.training.shared_cores", str(parts), timeout=120)[0] == expected

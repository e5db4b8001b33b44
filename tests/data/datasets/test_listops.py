"""ListOps, worked out again by another reading of the text."""

import collections
import statistics

import pytest

from keras_attn.data.datasets.listops import load_listops
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


def value_of(text):
    """Reads a list from the right end of what is open, with a stack."""
    stack = []
    for token in text.split():
        if token != "]":
            stack.append(int(token) if token.isdigit() else token)
            continue
        digits = []
        while not isinstance(stack[-1], str):
            digits.append(stack.pop())
        found = {
            "[MIN": sorted(digits)[0],
            "[MAX": sorted(digits)[-1],
            "[MED": int(statistics.median(digits)),
            "[SM": sum(digits) % 10,
        }
        stack.append(found[stack.pop()])
    (value,) = stack
    return value


@pytest.fixture(scope="module")
def parts():
    return load_listops()


def test_values_are_right(parts):
    assert value_of("[MAX 2 [SM 7 8 ] 3 ]") == 5
    assert value_of("[MED 2 3 ]") == 2
    for source, target in list(zip(parts["test"].sources, parts["test"].targets, strict=True)):
        assert value_of(source) == int(target)


def test_parts(parts):
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 20_000,
        "validation": 1_000,
        "test": 2_000,
    }
    assert len({source for part in parts.values() for source in part.sources}) == 23_000
    lengths = [len(source.split()) for part in parts.values() for source in part.sources]
    assert (min(lengths), max(lengths)) == (8, 64)
    tokens = collections.Counter(
        token for source in parts["train"].sources for token in source.split()
    )
    assert len(tokens) == 15
    # No digit is the answer so often that guessing it would do.
    assert max(collections.Counter(parts["train"].targets).values()) < 0.25 * 20_000


def test_the_same_for_the_same_seed():
    sizes = {"train": 100, "validation": 20, "test": 50}
    first, again, other = (load_listops(seed=seed, **sizes)["test"].sources for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == 50


def test_lists_of_the_arena():
    sizes = {"train": 3, "validation": 1, "test": 1}
    pairs = load_listops(min_length=500, max_length=2_000, **sizes)["train"]
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        assert 500 <= len(source.split()) <= 2_000
        assert value_of(source) == int(target)


def test_lengths_that_cannot_be():
    refused("min_length=20, max_length=24", load_listops, min_length=20, max_length=24)

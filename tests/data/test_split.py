from collections import Counter

import pytest

from keras_attn.data import Pairs, group_references, hold_out
from tests.refusals import message_of, refused

PAIRS = Pairs([f"word {row % 31}" for row in range(97)], [str(row) for row in range(97)], "made", 5)


def rows(pairs):
    return list(zip(pairs.sources, pairs.targets, strict=True))


@pytest.mark.parametrize("count", [1, 7, 30])
def test_hold_out(count):
    rest, held = hold_out(PAIRS, count, seed=3)
    assert len(set(held.sources)) == count
    assert not set(held.sources) & set(rest.sources)
    assert sorted(rows(rest) + rows(held)) == sorted(rows(PAIRS))
    for part in (rest, held):
        places = [int(target) for target in part.targets]
        assert places == sorted(places)
    assert (rest.name, held.name) == ("made (rest)", "made (held out)")


def test_hold_out_depends_on_the_seed():
    first, again, other = (hold_out(PAIRS, 7, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.mark.parametrize("count", [31, 97])
def test_hold_out_too_many(count):
    assert message_of(hold_out, PAIRS, count, seed=3) == (
        f"At most 30 of the 31 different sources of made can be held out. Received: count={count}."
    )


@pytest.mark.parametrize(("count", "seed", "received"), [(0, 1, "count=0"), (3, -2, "seed=-2")])
def test_hold_out_of_bad_numbers(count, seed, received):
    refused(f"Received: {received}.", hold_out, PAIRS, count, seed)


def test_references():
    pairs = Pairs(["b", "a", "b", "b", "c", "a"], ["1", "2", "3", "1", "4", "0"])
    assert group_references(pairs) == (["b", "a", "c"], [["1", "3"], ["2", "0"], ["4"]])


@pytest.mark.parametrize("seed", [1, 2])
def test_labels_keep_their_shares(seed):
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 9 + ["d"]
    pairs = Pairs([f"text {n}" for n in range(100)] + ["text 0"], [*labels, "a"], "made")
    rest, held = hold_out(pairs, 20, seed, stratify=True)
    sources = set(held.sources)
    counts = Counter(
        label for source, label in zip(pairs.sources, labels, strict=False) if source in sources
    )
    assert counts == {"a": 12, "b": 6, "c": 2}  # exact shares 12, 6, 1.8 and 0.2
    assert not sources & set(rest.sources)
    assert len(rest) + len(held) == 101
    assert hold_out(pairs, 20, seed, stratify=True)[1] == held
    assert hold_out(pairs, 20, seed + 1, stratify=True)[1] != held


def test_one_source_of_each_label_remains():
    pairs = Pairs(["p", "q", "r", "s"], ["a", "a", "b", "c"], "made")
    rest, held = hold_out(pairs, 3, 1, stratify=True)
    assert (sorted(set(rest.targets)), held.targets) == (["a", "b", "c"], ["a"])
    alone = Pairs(["p", "q"], ["a", "b"], "made")
    refused("no label has two different texts, .*labels=2", hold_out, alone, 1, 1, stratify=True)

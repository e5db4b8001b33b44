import os
import pathlib
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from keras_attn.data import Pairs, hold_out, load_cmudict, padding_share, plan_epoch, read_pairs
from tests.data.made import digest, made_examples, random_examples
from tests.refusals import message_of, refused

STATIC = pytest.mark.parametrize("static_shapes", [False, True])


def as_sets(plan):
    return {frozenset(rows.tolist()) for rows in plan}


@STATIC
@pytest.mark.parametrize("seed", [None, 0, 5])
@pytest.mark.parametrize(("rows", "batch_tokens"), [(997, 211), (997, 31), (13, 4099), (1, 31)])
def test_every_row_once_within_the_budget(rows, batch_tokens, seed, static_shapes):
    examples = random_examples(rows)
    plan = plan_epoch(examples, batch_tokens, seed, 3, static_shapes)
    assert Counter(row for batch in plan for row in batch.tolist()) == Counter(range(rows))
    assert len(plan.shapes) == len(plan) > 0
    for batch, shape in zip(plan, plan.shapes.tolist(), strict=True):
        needed = [len(batch), examples.lengths[batch, 0].max(), examples.lengths[batch, 1].max()]
        if static_shapes:
            assert all(size >= least for size, least in zip(shape, needed, strict=True))
        else:
            assert shape == needed
        assert shape[0] * shape[1] <= batch_tokens
        assert shape[0] * shape[2] <= batch_tokens


@pytest.mark.parametrize("seed", [None, 7])
def test_batches_are_full(seed):
    examples = random_examples(9973)
    plan = plan_epoch(examples, 1021, seed)
    needed = examples.lengths.max(axis=1).sum() / 1021
    assert len(plan) <= 1.06 * needed + 1
    planned = np.sort(plan.shapes[:, 0] * plan.shapes[:, 1:].max(axis=1))
    assert planned.mean() > 0.97 * 1021
    # Only the last rows of the order may fill a batch less than the others.
    assert planned[1] > 0.85 * 1021


def test_static_shapes_are_few_and_full():
    examples = random_examples(9973)
    plans = [plan_epoch(examples, 1021, 7, epoch, static_shapes=True) for epoch in (0, 1)]
    shapes = [{tuple(shape) for shape in plan.shapes.tolist()} for plan in plans]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) <= 16
    assert as_sets(plans[0]) != as_sets(plans[1])
    for plan in plans:
        left_over = Counter(
            shape
            for batch, shape in zip(plan, map(tuple, plan.shapes.tolist()), strict=True)
            if len(batch) < shape[0]
        )
        assert set(left_over.values()) <= {1}


@STATIC
def test_order_depends_on_seed_and_epoch_alone(static_shapes):
    examples = random_examples(997)
    digests = [
        digest(plan_epoch(examples, 211, seed, epoch, static_shapes))
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (None, 0))
    ]
    assert len(set(digests)) == 4
    again = plan_epoch(random_examples(997), 211, 0, 1, static_shapes)
    assert digest(again) == digests[1]
    # Without a seed nothing is shuffled.
    assert digest(plan_epoch(examples, 211, None, 1, static_shapes)) == digests[3]


def test_other_batches_in_other_epochs():
    examples = random_examples(997, longest=200)
    epochs = [as_sets(plan_epoch(examples, 2003, 5, epoch)) for epoch in range(5)]
    batches = [batch for epoch in epochs for batch in epoch]
    assert len(set(batches)) > 0.95 * len(batches)


def test_other_batches_of_rare_lengths():
    # No two rows have equal lengths, so that nothing can be exchanged between neighbours.
    examples = made_examples(list(range(2, 24)), list(range(2, 24)))
    epochs = {frozenset(as_sets(plan_epoch(examples, 61, 5, epoch))) for epoch in range(7)}
    assert len(epochs) > 1


@pytest.mark.slow
def test_same_in_every_process():
    code = """
from keras_attn.data import Pairs, hold_out, plan_epoch
from tests.data.made import digest, random_examples
for static in (False, True):
    print(digest(plan_epoch(random_examples(997), 211, 3, 2, static)))
words = [f"word {row % 31}" for row in range(97)]
print(hold_out(Pairs(words, words), 7, seed=3)[1].sources)
"""
    words = [f"word {row % 31}" for row in range(97)]
    expected = [
        *(digest(plan_epoch(random_examples(997), 211, 3, 2, static)) for static in (False, True)),
        str(hold_out(Pairs(words, words), 7, seed=3)[1].sources),
    ]
    for hash_seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-c", code],
            cwd=pathlib.Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert printed.splitlines() == expected


def test_sorted_without_seed():
    examples = random_examples(997)
    plan = plan_epoch(examples, 211, None)
    lengths = [examples.lengths[row, 1] for batch in plan for row in batch]
    assert lengths == sorted(lengths)


def test_batches_are_shuffled():
    examples = random_examples(997)
    plan = plan_epoch(examples, 211, 1)
    longest = plan.shapes[:, 2]
    # Neighbours are as unlike as any two batches, not steps of a sorted order.
    assert np.abs(np.diff(longest)).mean() > 5
    # Within a batch lengths are in no order either, so that its parts are alike.
    ordered = sum(
        (np.diff(examples.lengths[batch, 0]) >= 0).all() for batch in plan if len(batch) > 9
    )
    assert ordered < 0.5 * sum(len(batch) > 9 for batch in plan)


@STATIC
def test_padding_share_counts_zeros(static_shapes):
    examples = random_examples(997)
    plan = plan_epoch(examples, 211, 1, static_shapes=static_shapes)
    sources, targets = [], []
    for rows, shape in zip(plan, plan.shapes, strict=True):
        inputs, labels = examples.assemble(rows, shape)
        sources.extend(inputs["source_ids"].reshape(-1))
        targets.extend(labels.reshape(-1))
    share = padding_share(examples, plan)
    assert share["source"] == pytest.approx(np.mean(np.array(sources) == 0))
    assert share["target"] == pytest.approx(np.mean(np.array(targets) == 0))
    assert share["total"] == pytest.approx(np.mean(np.array(sources + targets) == 0))


def test_little_padding_on_words():
    pairs = load_cmudict()["train"]
    examples = made_examples(
        [len(word) + 1 for word in pairs.sources[::5]],
        [target.count(" ") + 2 for target in pairs.targets[::5]],
    )
    assert padding_share(examples, plan_epoch(examples, 4096, 1))["total"] < 0.06
    assert padding_share(examples, plan_epoch(examples, 4096, None))["total"] < 0.06
    static = plan_epoch(examples, 4096, 1, static_shapes=True)
    assert padding_share(examples, static)["total"] < 0.15


def test_little_padding_on_sentences(shared_data):
    pairs = read_pairs([shared_data / "multi30k" / f"train.{end}.gz" for end in ("de", "en")])
    examples = made_examples(
        [len(text.split()) + 1 for text in pairs.sources],
        [len(text.split()) + 1 for text in pairs.targets],
    )
    assert padding_share(examples, plan_epoch(examples, 4096, 1))["total"] < 0.06


@STATIC
def test_pair_longer_than_the_budget(static_shapes):
    examples = made_examples([3, 5, 7], [2, 1009, 3], name="pairs.tsv")
    assert len(plan_epoch(examples, 1009, 0, static_shapes=static_shapes)) > 1
    assert message_of(plan_epoch, examples, 1008, 0, static_shapes=static_shapes) == (
        "`batch_tokens` must hold the longest pair: pair 2 of pairs.tsv has 5 source and 1,009 "
        "target tokens, end included. Set training.batch_tokens=1009 or more, or a smaller length "
        "in `data`. Received: batch_tokens=1008."
    )


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ((0, 1, 0), "batch_tokens=0"),
        ((31.0, 1, 0), "batch_tokens=31.0"),
        ((31, -1, 0), "seed=-1"),
        ((31, 1.5, 0), "seed=1.5"),
        ((31, 1, -7), "epoch=-7"),
        ((31, 1, None), "epoch=None"),
        ((31, None, None), "epoch=None"),
    ],
)
def test_bad_numbers(arguments, received):
    refused(rf"Received: {received}\.", plan_epoch, random_examples(7), *arguments)

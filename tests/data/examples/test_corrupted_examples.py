"""Batches of span corruption: those of pairs, drawn by seed, epoch and row, and how they resume."""

import dataclasses

import numpy as np
import pytest

from keras_attn.data import (
    CorruptedExamples,
    PairExamples,
    SpanCorruption,
    TokenRows,
    batch_dataset,
    plan_epoch,
)
from keras_attn.tokenizers import SentencePieceTokenizer
from keras_attn.validation import UserError
from tests.data.made import assert_batches_equal
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

LETTERS = "abcdefghij"
TEXTS = ["a b c d e f g h i j a b c d", "", "j i h", "f", "g g g g g g h h"]


@pytest.fixture(scope="module")
def corruption():
    texts = [" ".join(LETTERS), *LETTERS] * 9
    return SpanCorruption(SentencePieceTokenizer.train(texts, 34, sentinels=9))


def made(corruption, max_source_length=20, **arguments):
    return CorruptedExamples.from_texts(TEXTS, corruption, max_source_length, **arguments)


def as_pairs(examples, seed, epoch):
    """The same as pairs that do not change, drawn text by text."""
    text, corruption = examples.text, examples.corruption
    rows = [text.ids[text.offsets[row] : text.offsets[row + 1]] for row in range(len(text))]
    drawn = [corruption.drawn(ids, [seed, epoch, row]) for row, ids in enumerate(rows)]
    source, target = (
        TokenRows.of_lengths(np.concatenate(side), [len(ids) for ids in side]).with_last(2)
        for side in zip(*drawn, strict=True)
    )
    return PairExamples(source=source, target=target, indices=examples.indices)


def test_a_letter_is_a_token(corruption):
    examples = made(corruption)
    assert examples.text.lengths.tolist() == [14, 3, 1, 8]
    assert examples.indices.tolist() == [0, 2, 3, 4]
    assert (examples.dropped_empty, examples.dropped_long) == (1, 0)
    # 14 letters: 2 dropped in a span. With the ends 12 + 1 + 1 and 2 + 2 + 1.
    assert examples.lengths.tolist() == [[14, 5], [4, 4], [2, 2], [9, 4]]


def test_batches_are_those_of_pairs(corruption):
    examples = made(corruption, seed=5).of_epoch(3)
    judge = as_pairs(examples, 5, 3)
    np.testing.assert_array_equal(examples.lengths, judge.lengths)
    for rows in ([1, 3], [0, 1, 2, 3], [2], []):
        assert_batches_equal(examples.assemble(rows), judge.assemble(rows))
    assert_batches_equal(examples.assemble([3, 1], (4, 11, 7)), judge.assemble([3, 1], (4, 11, 7)))
    with pytest.raises(UserError, match=r"source length, target length\) at least \(1, 14, 5\)"):
        examples.assemble([0], (1, 13, 5))


def test_long_texts_in_pieces(corruption):
    examples = made(corruption, max_source_length=8)
    assert examples.text.lengths.tolist() == [7, 7, 3, 1, 7, 1]
    assert examples.indices.tolist() == [0, 0, 2, 3, 4, 4]
    assert examples.lengths[:, 0].max() == 8
    shorter = made(corruption, max_source_length=8, max_target_length=3)
    assert shorter.text.lengths.tolist() == [1] * 26


def row(examples, number, *others):
    inputs, labels = examples.assemble(np.array([*others, number]))
    source, target = examples.lengths[number]
    return inputs["source_ids"][-1, :source].tolist(), labels[-1, :target].tolist()


def test_what_is_dropped_depends_on_seed_epoch_and_row_alone(corruption):
    examples = made(corruption, seed=7)
    alone = row(examples, 0)
    assert row(examples, 0, 2, 3, 1) == alone
    assert row(made(corruption, seed=7), 0) == alone
    assert row(examples.of_epoch(3).of_epoch(0), 0) == alone
    # Two letters in a row, from one of thirteen places.
    assert len({str(row(examples.of_epoch(epoch), 0)) for epoch in range(60)}) > 9
    seeds = [dataclasses.replace(examples, seed=seed) for seed in range(60)]
    assert len({str(row(one, 0)) for one in seeds}) > 9
    same = CorruptedExamples.from_texts([TEXTS[0]] * 60, corruption, 20)
    assert len({str(row(same, number)) for number in range(60)}) > 9


def test_as_a_stream_from_the_middle_and_in_parts(corruption):
    examples = CorruptedExamples.from_texts(TEXTS * 5, corruption, 20).of_epoch(2)
    plan = plan_epoch(examples, 48, seed=1, epoch=2)
    whole = list(batch_dataset(examples, plan).as_numpy_iterator())
    assert len(whole) == len(plan) > 4
    for batch, again in zip(whole[3:], batch_dataset(examples, plan, skip=3), strict=True):
        assert_batches_equal(again, batch)
    halves = [
        list(batch_dataset(examples, plan, 0, 2, first, 1).as_numpy_iterator()) for first in (0, 1)
    ]
    for (inputs, labels), *parts in zip(whole, *halves, strict=True):
        if len(labels) == 1:
            continue  # the other part is padding
        joined = np.concatenate([part[1] for part in parts])
        np.testing.assert_array_equal(joined, labels)
        for name, ids in inputs.items():
            np.testing.assert_array_equal(np.concatenate([part[0][name] for part in parts]), ids)


def test_mistakes(corruption):
    refused("needs at least a token and an end id.*max_source_length=1", made, corruption, 1)
    with pytest.raises(UserError, match="No text of none is left: none of 2 texts has a token"):
        CorruptedExamples.from_texts(["", " "], corruption, 9, name="none")
    with pytest.raises(UserError, match="Received: tokens=280, needed=15, sentinels=9"):
        CorruptedExamples.from_texts([TEXTS[0] * 20], corruption, 500)

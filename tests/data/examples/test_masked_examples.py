"""Texts of a masked language model: pieces, positions, labels, and what they depend on."""

import dataclasses

import numpy as np
import pytest

from keras_attn.data import MaskedExamples, Masking, batch_dataset, plan_epoch
from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

LETTERS = "abcdefghij"
TEXTS = ["a b c d e f g h i j a b c d", "", "j i h", "f", "g g g g g g h h"]


@pytest.fixture(scope="module")
def masking():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return Masking(WordPieceTokenizer([*special, *LETTERS]))  # a is 5, j is 14


def made(masking, max_length=20, **arguments):
    return MaskedExamples.from_texts(TEXTS, masking, max_length, **arguments)


def restored(batch):
    """The ids as they were before tokens were hidden, and which places were chosen."""
    inputs, labels = batch
    token_ids = inputs["token_ids"].copy()
    rows, columns = np.nonzero(labels)
    places = inputs["positions"][rows, columns]
    assert len(set(zip(rows.tolist(), places.tolist(), strict=True))) == len(rows)
    token_ids[rows, places] = labels[rows, columns]
    return token_ids.tolist(), np.bincount(rows, minlength=len(labels)).tolist()


def test_whole_texts(masking):
    examples = made(masking)
    assert examples.indices.tolist() == [0, 2, 3, 4]
    assert (examples.dropped_empty, examples.dropped_long) == (1, 0)
    assert examples.lengths[:, 0].tolist() == [16, 5, 3, 10]
    inputs, labels = batch = examples.assemble(np.array([1, 3]))
    assert inputs["token_ids"].shape == (2, 10)
    assert inputs["positions"].shape == labels.shape == (2, 2)  # 15% of 10
    assert {array.dtype for array in (*inputs.values(), labels)} == {np.dtype("int32")}
    ids, counts = restored(batch)
    assert ids == [[2, 14, 13, 12, 3, 0, 0, 0, 0, 0], [2, *[11] * 6, 12, 12, 3]]
    assert counts == [1, 1]
    assert (inputs["token_ids"] != np.array(ids)).any() or (labels > 0).sum() == 2


def test_long_texts_in_pieces(masking):
    examples = made(masking, max_length=8)
    assert examples.lengths[:, 0].tolist() == [8, 8, 4, 5, 3, 8, 4]
    assert examples.indices.tolist() == [0, 0, 0, 2, 3, 4, 4]
    ids, _ = restored(examples.assemble(np.arange(3)))
    assert ids[0] == [2, 5, 6, 7, 8, 9, 10, 3]
    assert ids[2] == [2, 7, 8, 3, 0, 0, 0, 0]


def row(examples, number, *others):
    """What one row becomes, in a batch with others."""
    inputs, labels = examples.assemble(np.array([*others, number]))
    length = examples.lengths[number, 0]
    chosen = labels[-1] > 0
    parts = inputs["token_ids"][-1, :length], inputs["positions"][-1, chosen], labels[-1, chosen]
    return [part.tolist() for part in parts]


def test_what_is_hidden_depends_on_seed_epoch_and_row_alone(masking):
    examples = made(masking, seed=7)
    alone = row(examples, 0)
    assert row(examples, 0, 2, 3, 1) == alone
    assert row(made(masking, seed=7), 0) == alone
    assert row(examples.of_epoch(3).of_epoch(0), 0) == alone
    ways = {str(row(examples.of_epoch(epoch), 0)) for epoch in range(20)}
    assert len(ways) > 15
    assert row(examples.of_epoch(4), 0, 3) == row(examples.of_epoch(4), 0) != alone
    seeds = [dataclasses.replace(examples, seed=seed) for seed in range(20)]
    assert len({str(row(one, 0)) for one in seeds}) > 15
    same = MaskedExamples.from_texts([TEXTS[0]] * 20, masking, 20)
    assert len({str(row(same, number)) for number in range(20)}) > 15


def test_rows_of_padding(masking):
    inputs, labels = made(masking).assemble(np.array([2]), (3, 7))
    assert inputs["token_ids"].shape == (3, 7)
    assert not inputs["token_ids"][1:].any()
    assert (labels > 0).sum(axis=1).tolist() == [1, 0, 0]


def test_as_a_stream_from_the_middle(masking):
    examples = MaskedExamples.from_texts(TEXTS * 5, masking, 20).of_epoch(2)
    plan = plan_epoch(examples, 48, seed=1, epoch=2)
    whole = list(batch_dataset(examples, plan))
    assert len(whole) == len(plan) > 4
    for (inputs, labels), (others, theirs) in zip(
        whole[3:], batch_dataset(examples, plan, skip=3), strict=True
    ):
        np.testing.assert_array_equal(inputs["token_ids"], others["token_ids"])
        np.testing.assert_array_equal(inputs["positions"], others["positions"])
        np.testing.assert_array_equal(labels, theirs)


def test_mistakes(masking):
    refused("a start, a token and an end. Received: max_length=2", made, masking, max_length=2)
    with pytest.raises(UserError, match="No text of none is left: none of 2 texts has a token"):
        MaskedExamples.from_texts(["", " "], masking, 9, "none")

"""Labelled texts: ids and classes written out by hand."""

import numpy as np
import pytest

from keras_attn.data import LabelledExamples, Pairs, batch_dataset, plan_epoch
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.refusals import message_of

pytestmark = pytest.mark.tensorflow

LABELS = ["bad", "good"]
PAIRS = Pairs(["ab", "b", "", "aabab", "a"], ["good", "bad", "bad", "bad", "good"], "made")


@pytest.fixture
def tokenizer():
    return train_tokenizer("characters", ["aab"])  # a is 4, b is 5


def test_ids_and_classes(tokenizer):
    examples = LabelledExamples.from_pairs(
        PAIRS, tokenizer, LABELS, max_length=3, long_texts="drop"
    )
    assert examples.indices.tolist() == [0, 1, 4]
    assert (examples.dropped_empty, examples.dropped_long, examples.dropped) == (1, 1, 2)
    inputs, labels = examples.assemble(np.array([0, 2, 1]))
    assert inputs["token_ids"].tolist() == [[4, 5, 2], [4, 2, 0], [5, 2, 0]]
    assert labels.tolist() == [2, 2, 1]
    assert labels.dtype == np.int32


def test_long_texts(tokenizer):
    examples = LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS, 3)
    assert (examples.truncated, examples.dropped_long, len(examples)) == (1, 0, 4)
    long = PAIRS.sources[3]
    whole = [*tokenizer.tokenize([long])[0].numpy()]
    assert examples.assemble([2])[0]["token_ids"].tolist() == [[*whole[:2], 2]]
    started = LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS, 4, with_start=True)
    assert started.assemble([2])[0]["token_ids"].tolist() == [[1, *whole[:2], 2]]
    message = message_of(LabelledExamples.from_pairs, PAIRS, tokenizer, LABELS, 3, False, "error")
    assert message == (
        "1 texts of made are too long, the first one is number 4. Received: max_length=3, "
        "long_texts='error'."
    )


def test_rows_of_padding_have_no_class(tokenizer):
    examples = LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS)
    inputs, labels = examples.assemble(np.array([1]), (3, 4))
    assert inputs["token_ids"].tolist() == [[5, 2, 0, 0], [0] * 4, [0] * 4]
    assert labels.tolist() == [1, 0, 0]


def test_batches(tokenizer):
    examples = LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS)
    plan = plan_epoch(examples, 6, seed=1)
    classes = [label for _, labels in batch_dataset(examples, plan) for label in labels.numpy()]
    assert sorted(classes) == [1, 1, 2, 2]


def test_unknown_label(tokenizer):
    assert message_of(LabelledExamples.from_pairs, PAIRS, tokenizer, ["good", "fair"]) == (
        "Text 2 of made has a label that does not occur in the training data. "
        "Received: 'bad'; the labels are good, fair."
    )


def test_no_text_left(tokenizer):
    with pytest.raises(UserError, match="of 5 texts 1 have no token and 4 are too long.*=1"):
        LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS, max_length=1, long_texts="drop")
    with pytest.raises(UserError, match="must leave room for a token. Received: max_length=1"):
        LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS, max_length=1)


def test_with_a_start_before_each_text(tokenizer):
    examples = LabelledExamples.from_pairs(PAIRS, tokenizer, LABELS, 4, True, "drop")
    assert examples.indices.tolist() == [0, 1, 4]
    inputs, _ = examples.assemble(np.array([0, 2]))
    assert inputs["token_ids"].tolist() == [[1, 4, 5, 2], [1, 4, 2, 0]]


def test_the_checksum_is_of_texts_labels_and_order(tokenizer):
    def checksum(*pairs):
        return LabelledExamples.from_pairs(Pairs(*pairs, "made"), tokenizer, LABELS).checksum

    found = checksum(["ab", "b"], ["bad", "good"])
    assert found == checksum(["ab", "b"], ["bad", "good"])
    others = [
        (["aa", "b"], ["bad", "good"]),
        (["ab", "b"], ["good", "good"]),
        (["a", "bb"], ["bad", "good"]),
        (["b", "ab"], ["good", "bad"]),
    ]
    assert len({found, *(checksum(*pairs) for pairs in others)}) == 5

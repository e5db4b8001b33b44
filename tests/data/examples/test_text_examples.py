"""Texts of a language model: inputs, labels and pieces, written out by hand."""

import numpy as np
import pytest

from keras_attn.data import TextExamples, batch_dataset, padding_share, plan_epoch
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def tokenizer():
    characters = train_tokenizer("characters", ["aaaabbbccd"])
    assert characters.vocabulary[4:] == ["a", "b", "c", "d"]  # 4, 5, 6, 7; start 1, end 2
    return characters


def test_whole_texts(tokenizer):
    examples = TextExamples.from_texts(["abc", "", "d"], tokenizer, name="made")
    assert (len(examples), examples.indices.tolist()) == (2, [0, 2])
    assert (examples.dropped_empty, examples.name) == (1, "made")
    inputs, labels = examples.assemble(np.array([1, 0]))
    assert inputs["token_ids"].tolist() == [[1, 7, 0, 0], [1, 4, 5, 6]]
    assert labels.tolist() == [[7, 2, 0, 0], [4, 5, 6, 2]]


def test_long_texts_in_pieces(tokenizer):
    # With its end each text has 7, 3, 4 and 2 tokens: pieces of 3, 3, 1; 3; 3, 1; 2.
    examples = TextExamples.from_texts(["abcdab", "cd", "aab", "b"], tokenizer, max_length=3)
    assert examples.lengths[:, 0].tolist() == [3, 3, 1, 3, 3, 1, 2]
    assert examples.indices.tolist() == [0, 0, 0, 1, 2, 2, 3]
    inputs, labels = examples.assemble(np.arange(7))
    assert labels.tolist() == [
        *([4, 5, 6], [7, 4, 5], [2, 0, 0]),
        [6, 7, 2],
        *([4, 4, 5], [2, 0, 0]),
        [5, 2, 0],
    ]
    # A piece from the middle begins with the token before it.
    assert inputs["token_ids"].tolist() == [
        *([1, 4, 5], [6, 7, 4], [5, 0, 0]),
        [1, 6, 7],
        *([1, 4, 4], [5, 0, 0]),
        [1, 5, 0],
    ]


@pytest.mark.parametrize("static_shapes", [False, True])
def test_batches_hold_every_piece_once(tokenizer, static_shapes):
    generator = np.random.default_rng(3)
    texts = ["".join(generator.choice(list("abcd"), length)) for length in range(1, 60)]
    examples = TextExamples.from_texts(texts, tokenizer, max_length=13)
    plan = plan_epoch(examples, 67, seed=5, static_shapes=static_shapes)
    assert sorted(np.concatenate(plan.batches).tolist()) == list(range(len(examples)))
    zeros, tokens = 0, 0
    for inputs, labels in batch_dataset(examples, plan):
        assert labels.shape == inputs["token_ids"].shape
        assert labels.shape[0] * labels.shape[1] <= 67
        zeros += int((labels.numpy() == 0).sum())
        tokens += labels.numpy().size
    share = padding_share(examples, plan)
    assert share["text"] == share["total"] == pytest.approx(zeros / tokens)


def test_no_text_left(tokenizer):
    with pytest.raises(UserError, match="No text of made is left: none of 2 texts has a token"):
        TextExamples.from_texts(["", ""], tokenizer, name="made")


def test_longer_than_the_budget(tokenizer):
    examples = TextExamples.from_texts(["ab", "abcdabcd"], tokenizer, name="made")
    refused("longest text: text 2 of made has 9 text tokens, end", plan_epoch, examples, 8, seed=1)

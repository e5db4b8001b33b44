import itertools

import numpy as np
import pytest

from keras_attn.data import PairExamples, Pairs
from keras_attn.data.stored import token_rows
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.data.made import assert_batches_equal, made_examples, naive_batch
from tests.refusals import message_of

WORDS = ["cab", "b", "", "abcab", "ca", "abbabba"]
SYMBOLS = ["K AE B", "B", "K", "AE B K", "   ", "B B"]
CHARACTER_IDS = {"b": 4, "a": 5, "c": 6}


@pytest.fixture
def tokenizers():
    characters = train_tokenizer("characters", ["bbbaac"])
    symbols = train_tokenizer("symbols", ["B B B K K AE"])
    assert characters.vocabulary[4:] == ["b", "a", "c"]
    assert symbols.vocabulary[4:] == ["B", "K", "AE"]
    return characters, symbols


def rows_of(side):
    return [side.ids[begin:end].tolist() for begin, end in itertools.pairwise(side.offsets)]


def test_from_pairs(tokenizers):
    made = PairExamples.from_pairs(Pairs(WORDS, SYMBOLS, "made"), *tokenizers)
    assert rows_of(made.source) == [
        [*(CHARACTER_IDS[letter] for letter in word), 2]
        for word in ("cab", "b", "abcab", "abbabba")
    ]
    assert rows_of(made.target) == [[5, 6, 4, 2], [4, 2], [6, 4, 5, 2], [4, 4, 2]]
    assert made.indices.tolist() == [0, 1, 3, 5]
    assert (len(made), made.dropped, made.dropped_long, made.dropped_empty) == (4, 2, 0, 2)
    for side in (made.source, made.target):
        assert (side.ids.dtype, side.offsets.dtype) == (np.int32, np.int64)
    assert made.lengths.tolist() == [[4, 4], [2, 2], [6, 4], [8, 3]]
    assert (made.name, made.start_id) == ("made", 1)


@pytest.mark.parametrize(
    ("longest_source", "longest_target", "kept"),
    [(8, 4, [0, 1, 3, 5]), (7, 4, [0, 1, 3]), (8, 3, [1, 5]), (5, None, [0, 1]), (2, 2, [1])],
)
def test_maximum_lengths_count_the_end(tokenizers, longest_source, longest_target, kept):
    pairs = Pairs(WORDS, SYMBOLS, "made")
    made = PairExamples.from_pairs(pairs, *tokenizers, longest_source, longest_target)
    assert made.indices.tolist() == kept
    assert (made.dropped_empty, made.dropped_long) == (2, 4 - len(kept))
    whole = PairExamples.from_pairs(pairs, *tokenizers)
    same = [whole.indices.tolist().index(pair) for pair in kept]
    assert_batches_equal(made.assemble(np.arange(len(kept))), naive_batch(whole, same))


def test_nothing_left(tokenizers):
    pairs = Pairs(WORDS, SYMBOLS, "made")
    assert message_of(PairExamples.from_pairs, pairs, *tokenizers, 1, 7) == (
        "No pair of made is left: of 6 pairs 2 have no token and 4 are too long. "
        "Received: max_source_length=1, max_target_length=7."
    )


@pytest.mark.parametrize("name", ["max_source_length", "max_target_length"])
def test_bad_maximum(tokenizers, name):
    with pytest.raises(UserError, match=f"`{name}` must be a positive integer.*{name}=0"):
        PairExamples.from_pairs(Pairs(WORDS, SYMBOLS), *tokenizers, **{name: 0})


def test_tokenises_in_batches(tokenizers, monkeypatch):
    generator = np.random.default_rng(5)
    words = ["".join(generator.choice(list("abcx"), generator.integers(1, 11))) for _ in range(97)]
    pairs = Pairs(words, [" ".join(word.upper()) for word in words])
    whole = PairExamples.from_pairs(pairs, *tokenizers)
    monkeypatch.setattr(token_rows, "_TEXTS_A_CALL", 7)
    parts = PairExamples.from_pairs(pairs, *tokenizers)
    assert len(whole) == 97
    assert rows_of(parts.source) == rows_of(whole.source)
    assert rows_of(parts.target) == rows_of(whole.target)
    assert parts.indices.tolist() == whole.indices.tolist()
    for row, word in enumerate(words):
        expected = [CHARACTER_IDS.get(letter, 3) for letter in word] + [2]
        assert rows_of(whole.source)[row] == expected


def test_batch_derived_by_hand():
    made = made_examples([3, 2, 4], [2, 5, 3])
    inputs, labels = made.assemble(np.array([2, 0]))
    assert inputs["source_ids"].tolist() == [
        [1000200, 1000201, 1000202, 2],
        [1000000, 1000001, 2, 0],
    ]
    assert inputs["target_ids"].tolist() == [[1, 5000200, 5000201], [1, 5000000, 0]]
    assert labels.tolist() == [[5000200, 5000201, 2], [5000000, 2, 0]]


@pytest.mark.parametrize("indices", [[0], [6, 6, 0], list(range(11)), [10, 3, 7, 1]])
def test_batch_against_naive(indices):
    generator = np.random.default_rng(2)
    made = made_examples(generator.integers(2, 13, 11).tolist(), generator.integers(2, 9, 11))
    assert_batches_equal(made.assemble(np.array(indices)), naive_batch(made, indices))


def test_padding_to_a_shape():
    made = made_examples([3, 2, 4], [2, 5, 3])
    inputs, labels = made.assemble(np.array([0, 2]), (5, 7, 11))
    expected_inputs, expected_labels = naive_batch(made, [0, 2])
    for array, expected, width in (
        (inputs["source_ids"], expected_inputs["source_ids"], 7),
        (inputs["target_ids"], expected_inputs["target_ids"], 11),
        (labels, expected_labels, 11),
    ):
        assert array.shape == (5, width)
        assert array.dtype == np.int32
        np.testing.assert_array_equal(array[:2, : expected.shape[1]], expected)
        assert not array[2:].any()
        assert not array[:, expected.shape[1] :].any()


def test_no_rows_are_all_padding():
    inputs, labels = made_examples([3], [2]).assemble(np.array([], np.int64), (2, 3, 5))
    assert inputs["source_ids"].tolist() == [[0, 0, 0]] * 2
    assert inputs["target_ids"].tolist() == labels.tolist() == [[0, 0, 0, 0, 0]] * 2


@pytest.mark.parametrize("pad_to", [(1, 4, 3), (2, 3, 3), (2, 4, 2)])
def test_shape_too_small(pad_to):
    made = made_examples([3, 2, 4], [2, 5, 3])
    assert message_of(made.assemble, np.array([0, 2]), pad_to) == (
        "`pad_to` must hold the batch, as (rows, source length, target length) at least "
        f"(2, 4, 3). Received: pad_to={pad_to}."
    )

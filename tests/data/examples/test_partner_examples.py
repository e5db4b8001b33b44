"""Pairs of texts that belong together, and pairs with scores: written out by hand."""

import numpy as np
import pytest

from keras_attn.data import (
    Pairs,
    PartnerExamples,
    batch_dataset,
    has_scores,
    plan_epoch,
    read_scored_pairs,
)
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

PAIRS = Pairs(["ab", "b", "", "aabab", "b"], ["b", "aa", "b", "a", "ab"], "made")


@pytest.fixture
def tokenizer():
    return train_tokenizer("characters", ["aab"])  # a is 4, b is 5; 1 starts and 2 ends


def test_ids_and_numbers(tokenizer):
    examples = PartnerExamples.from_pairs(PAIRS, tokenizer, max_length=5)
    assert examples.indices.tolist() == [0, 1, 3, 4]
    assert (examples.dropped_empty, examples.dropped_long) == (1, 0)
    assert examples.lengths.tolist() == [[4, 3], [3, 4], [5, 3], [3, 4]]
    inputs, labels = examples.assemble(np.array([1, 2]))
    assert inputs["token_ids"].tolist() == [
        [1, 5, 2, 0, 0],
        [1, 4, 4, 5, 2],  # cut
        [1, 4, 4, 2, 0],
        [1, 4, 2, 0, 0],
    ]
    numbers = labels.max(axis=1)
    np.testing.assert_array_equal(labels, np.where(inputs["token_ids"], numbers[:, None], 0))
    # "ab" and "b" are sources and targets.
    assert examples.numbers.tolist() == [[1, 2], [2, 3], [5, 6], [2, 1]]
    assert numbers.tolist() == [2, 5, 3, 6]
    assert labels.dtype == np.int32


def test_rows_of_padding(tokenizer):
    examples = PartnerExamples.from_pairs(PAIRS, tokenizer, max_length=9)
    inputs, labels = examples.assemble(np.array([0]), (2, 4, 5))
    assert inputs["token_ids"].tolist() == [[1, 4, 5, 2, 0], [0] * 5, [1, 5, 2, 0, 0], [0] * 5]
    assert labels.max(axis=1).tolist() == [1, 0, 2, 0]


def test_every_pair_is_in_a_batch_with_its_partner(tokenizer):
    examples = PartnerExamples.from_pairs(PAIRS, tokenizer, max_length=9)
    plan = plan_epoch(examples, 12, seed=1)
    parts = [labels.numpy().max(axis=1) for _, labels in batch_dataset(examples, plan, replicas=2)]
    found = [pair for part in parts for pair in part.reshape(2, -1).T.tolist() if pair != [0, 0]]
    assert sorted(found) == sorted(examples.numbers.tolist())


def test_mistakes(tokenizer):
    with pytest.raises(UserError, match="a start, a token and an end. Received: max_length=2"):
        PartnerExamples.from_pairs(PAIRS, tokenizer, 2)
    with pytest.raises(UserError, match="No pair of none is left: none of 1 has tokens"):
        PartnerExamples.from_pairs(Pairs([""], ["a"], "none"), tokenizer, 5)


def test_scored_pairs(tmp_path):
    path = tmp_path / "scored.tsv"
    path.write_text("a b\tc\t4.5\nd\te\t-1\n", encoding="utf-8")
    assert has_scores(path)
    pairs = read_scored_pairs(path)
    assert (pairs.sources, pairs.targets, pairs.scores) == (["a b", "d"], ["c", "e"], [4.5, -1.0])
    path.write_text("a\tb\t1\na\tb\nc\t\t3\nd\te\tnan\n", encoding="utf-8")
    refused(r"scored.tsv, line 2, column 4: expected text<TAB>other<T", read_scored_pairs, path)
    assert read_scored_pairs(path, skip_bad_lines=True).skipped == 3
    path.write_text("a\tb\n", encoding="utf-8")
    assert not has_scores(path)
    with pytest.raises(UserError, match="nothing is left because all 1 lines are malformed"):
        read_scored_pairs(path, skip_bad_lines=True)

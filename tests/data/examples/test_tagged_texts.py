"""Texts with a tag a word: read, told what is wrong, as ids with labels."""

import numpy as np
import pytest

from keras_attn.data import Pairs, TaggedExamples, batch_dataset, plan_epoch, read_tagged_texts
from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.validation import UserError
from tests.refusals import message_of, refused

pytestmark = pytest.mark.tensorflow

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
LABELS = ["D", "N", "V"]
SOURCES = ["the cats sat", "cats", "\u200b sat", "the cat sat the cat"]
PAIRS = Pairs(SOURCES, ["D N V", "N", "N V", "D  N\tV D N"], "made")


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(TOKENS)


def written(folder, content, name="tags.tsv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def test_read(tmp_path):
    path = written(tmp_path, "a b\tX Y\n c \t Z \n")
    pairs = read_tagged_texts(path)
    assert (pairs.sources, pairs.targets, pairs.skipped) == (["a b", " c "], ["X Y", " Z "], 0)
    texts = written(tmp_path, "a b\nc\n", "texts")
    tags = written(tmp_path, "X Y\nZ\n", "tags")
    assert read_tagged_texts([texts, tags]).targets == ["X Y", "Z"]


def test_malformed_lines(tmp_path):
    path = written(tmp_path, "a b\tX Y\na b c\tX Y\nno tab\nc\tZ\n")
    assert message_of(read_tagged_texts, path) == (
        f"{path}, line 2, column 7: expected a tag for each of 3 words, found 2 tags in 'X Y'. "
        "Set `skip_bad_lines` (--skip-bad-lines) to leave such lines out. Of the next 2 rows 1 "
        "cannot be read either."
    )
    pairs = read_tagged_texts(path, skip_bad_lines=True)
    assert (pairs.sources, pairs.skipped) == (["a b", "c"], 2)
    texts = written(tmp_path, "a b\nc\n", "texts")
    tags = written(tmp_path, "X Y\nZ Z\n", "tags")
    with pytest.raises(UserError, match="tags, line 2, column 1: .* each of 1 words, found 2 tags"):
        read_tagged_texts([texts, tags])
    assert read_tagged_texts([texts, tags], skip_bad_lines=True).skipped == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.conll", "B-PER\tAnna\nO\tlives\n\n", "would be 'B-PER', 'O'; .* text=2 tags=1"),
        ("a.conll", "1\tAnna\tB-PER\n2\tlives\tO\n\n", "would be '1', '2'; .* text=2 tags=3"),
        ("a.conll", "New York\tB-LOC\n\n", "line 1: expected one word, found 'New York'"),
        (
            "a.jsonl",
            '{"tokens": ["New York"], "tags": [1]}\n',
            "found 'New York' in place of a word",
        ),
        ("a.jsonl", '{"tokens": ["a", ""], "tags": [1, 0]}\n', "found '' in place of a word"),
    ],
)
def test_what_is_no_word_is_named(name, content, message, tmp_path):
    refused(message, read_tagged_texts, written(tmp_path, content, name))


def test_the_label_stands_at_a_words_first_piece(tokenizer):
    examples = TaggedExamples.from_pairs(PAIRS, tokenizer, LABELS)
    inputs, labels = examples.assemble(np.array([0, 1, 2]), (4, 7))
    expected = [[2, 5, 6, 7, 8, 3, 0], [2, 6, 7, 3, 0, 0, 0], [2, 1, 8, 3, 0, 0, 0], [0] * 7]
    assert inputs["token_ids"].tolist() == expected
    expected = [[0, 1, 2, 0, 3, 0, 0], [0, 2, 0, 0, 0, 0, 0], [0, 2, 3, 0, 0, 0, 0], [0] * 7]
    assert labels.tolist() == expected
    assert labels.dtype == np.int32


def test_long_and_empty_texts_are_counted(tokenizer):
    pairs = Pairs([*PAIRS.sources, " "], [*PAIRS.targets, ""], "made")
    drop = {"long_texts": "drop"}
    examples = TaggedExamples.from_pairs(pairs, tokenizer, LABELS, max_length=6, **drop)
    assert examples.indices.tolist() == [0, 1, 2]
    assert (examples.dropped_long, examples.dropped_empty) == (1, 1)
    with pytest.raises(UserError, match="of 5 texts 1 have no word and 4 are too long.*=3"):
        TaggedExamples.from_pairs(pairs, tokenizer, LABELS, max_length=3, **drop)
    cut = TaggedExamples.from_pairs(pairs, tokenizer, LABELS, max_length=6)
    assert (cut.truncated, cut.dropped_empty, len(cut)) == (1, 1, 4)
    whole = TaggedExamples.from_pairs(pairs, tokenizer, LABELS)
    (ids, tags), (all_ids, all_tags) = cut.assemble([3]), whole.assemble([3])
    end = all_ids["token_ids"][:, -1:]
    expected = np.concatenate([all_ids["token_ids"][:, :5], end], axis=1)
    np.testing.assert_array_equal(ids["token_ids"], expected)
    np.testing.assert_array_equal(tags, np.pad(all_tags[:, :5], [(0, 0), (0, 1)]))


def test_batches(tokenizer):
    examples = TaggedExamples.from_pairs(PAIRS, tokenizer, LABELS)
    batches = batch_dataset(examples, plan_epoch(examples, 14, seed=1))
    labels = np.concatenate([labels.numpy().ravel() for _, labels in batches])
    assert np.bincount(labels)[1:].tolist() == [3, 5, 3]


def test_other_tags(tokenizer):
    with pytest.raises(UserError, match="Text 1 of made has a label .* Received: 'V'; the labels"):
        TaggedExamples.from_pairs(PAIRS, tokenizer, LABELS[:2])
    examples = TaggedExamples.from_pairs(PAIRS, tokenizer, LABELS[:2], other_tags=True)
    _, labels = examples.assemble(np.array([0]))
    assert labels.tolist() == [[0, 1, 2, 0, 0, 0]]


def test_not_as_many_tags_as_words(tokenizer):
    pairs = Pairs(["a b"], ["D"], "made")
    with pytest.raises(UserError, match="Text 1 of made must have a tag .* words=2, tags=1"):
        TaggedExamples.from_pairs(pairs, tokenizer, LABELS)

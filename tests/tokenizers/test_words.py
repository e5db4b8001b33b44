"""Words tokenised each for itself, in Python and in the graph alike."""

import pytest
import tensorflow as tf

from keras_attn.tokenizers import WordPieceTokenizer, split_words, train_tokenizer, word_pieces

pytestmark = pytest.mark.tensorflow

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "don", "'", "t", "."]
TEXTS = ["The cats", "", "  don't \t the\v\f.\r\n", "the\u00a0cat \u200b cat"]
TEXTS += ["\x1cthe \u2003", "日"]
WORDS = [["The", "cats"], [], ["don't", "the", "."], ["the\u00a0cat", "\u200b", "cat"]]
WORDS += [["\x1cthe", "\u2003"], ["日"]]


def test_words_stand_between_white_space_of_ascii():
    assert list(map(split_words, TEXTS)) == WORDS
    words, _ = word_pieces(WordPieceTokenizer(TOKENS, True), tf.constant(TEXTS))
    assert [[word.decode() for word in row] for row in words.to_list()] == WORDS


def test_each_word_for_itself_and_none_without_a_token():
    _, pieces = word_pieces(WordPieceTokenizer(TOKENS, True), tf.constant(TEXTS))
    unknown = [1]
    assert pieces.to_list() == [
        [[5], [6, 7]],
        [],
        [[8, 9, 10], [5], [11]],
        [[5, 6], unknown, [6]],  # a space that is not ASCII's, and no width at all
        [[5], unknown],
        [unknown],
    ]
    assert pieces.dtype == tf.int32


@pytest.mark.parametrize("texts", [[], ["", " "]])
def test_no_words(texts):
    words, pieces = word_pieces(WordPieceTokenizer(TOKENS), tf.constant(texts, tf.string))
    assert words.to_list() == pieces.to_list() == [[]] * len(texts)


def test_pieces_of_sentencepiece_are_those_of_the_text():
    lines = ["the cat sat on the mat", "a cat and a mat", "the mat sat"]
    tokenizer = train_tokenizer("sentencepiece", lines, vocabulary_size=24)
    _, pieces = word_pieces(tokenizer, tf.constant(lines))
    assert pieces.merge_dims(1, 2).to_list() == tokenizer.tokenize(tf.constant(lines)).to_list()

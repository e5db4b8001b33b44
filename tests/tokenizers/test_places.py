"""Places of tokens in the text as it was given."""

import pytest
import tensorflow as tf

from keras_attn.tokenizers import WordPieceTokenizer, train_tokenizer
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

TEXTS = ["Zoë's  ÜBER-café, 日本 İstanbul (1990s)!", "", "a  b [MASK]", "x\u0301y ŉ"]
TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] uber - cafe , 日 本 ( 1990 ##s ) ! zoe s ' a b [ ] mask"
WHOLE = ["Zoë", "'", "s", "ÜBER", "-", "café", ",", "日", "本", "İstanbul", "(", "1990", "s", ")"]


def parts(text, begins, ends):
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def test_word_pieces():
    tokenizer = WordPieceTokenizer(TOKENS.split(), lowercase=True)
    ids, begins, ends = (x.to_list() for x in tokenizer.tokenize_with_places(TEXTS))
    assert ids[:2] == tokenizer.tokenize(TEXTS[:2]).to_list()
    assert parts(TEXTS[0], begins[0], ends[0]) == [*WHOLE, "!"]
    assert parts(TEXTS[2], begins[2], ends[2]) == ["a", "b", "[", "MASK", "]"]  # not special here
    assert ends[3][-1] == len(TEXTS[3])


@pytest.mark.parametrize("kind", ["characters", "byte_level_bpe", "sentencepiece"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_tokens_spell_what_is_at_their_places(kind, lowercase):
    options = {"vocabulary_size": 320} if kind == "byte_level_bpe" else {}
    options |= {"vocabulary_size": 70} if kind == "sentencepiece" else {}
    tokenizer = train_tokenizer(kind, TEXTS[:1] * 9 + TEXTS[2:], lowercase=lowercase, **options)
    graph = tf.function(
        tokenizer.tokenize_with_places, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    ids, begins, ends = (x.to_list() for x in graph(TEXTS))
    assert ids == tokenizer.tokenize(TEXTS).to_list()
    for text, first, last in zip(TEXTS, begins, ends, strict=True):
        assert first == sorted(first)
        covered = {place for pair in zip(first, last, strict=True) for place in range(*pair)}
        assert covered >= {place for place, one in enumerate(text) if not one.isspace()}
    place = TEXTS[0].index("1990s")
    token = begins[0].index(place) if place in begins[0] else begins[0].index(place - 2)
    assert TEXTS[0][begins[0][token] : ends[0][token]].strip(" (")[:1] == "1"


def test_kinds_that_do_not_know_them():
    tokenizer = train_tokenizer("symbols", ["a b"])
    refused("needs a tokenizer that knows the places", tokenizer.tokenize_with_places, ["a b"])

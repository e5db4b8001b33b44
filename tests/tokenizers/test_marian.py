"""Marian's tokenizer: languages, unknown runs, pieces of the other side, saving."""

import io

import pytest
import sentencepiece
import tensorflow as tf

from keras_attn.tokenizers import MarianTokenizer, load_tokenizer
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
TOKENS = [*SPECIAL, "▁a", "▁", "b", "日本", "▁ü", ">>fra<<", "c"]


@pytest.fixture(scope="module")
def model():
    """Its pieces are characters, and the sign of a space."""
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c"] * 9),
        model_writer=buffer,
        model_type="char",
        vocab_size=7,
        minloglevel=2,
    )
    return buffer.getvalue()


@pytest.fixture(scope="module")
def tokenizer(model):
    return MarianTokenizer(model, TOKENS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("b c", ["▁", "b", "▁", "c"]),
        ("a", ["▁", "<unk>"]),  # no piece of the vocabulary
        ("b日本", ["▁", "b", "日本"]),
        ("b日", ["▁", "b", "<unk>"]),
        ("日本ж", ["▁", "<unk>"]),  # one run
        (">>fra<<b", [">>fra<<", "▁", "b"]),
        (">>deu<< b", ["<unk>", "▁", "b"]),
        (">>fr\na<<", ["<unk>"]),
        ("b>>fra<<", ["▁", "b", "<unk>", *["<unk>"] * 2]),
        ("b</s>c", ["▁", "b", "</s>", "▁", "c"]),
        ("</s>>>fra<<c", ["</s>", ">>fra<<", "▁", "c"]),
        ("<unk><pad>", ["<unk>", "<s>"]),
    ],
)
def test_texts_become_tokens(tokenizer, text, expected):
    (ids,) = tokenizer.tokenize(tf.constant([text])).to_list()
    assert [TOKENS[id_] for id_ in ids] == expected


def test_tokens_become_texts(tokenizer):
    ids = [[TOKENS.index(token) for token in ("▁a", "b", "▁", "日本", "▁ü", "</s>", "c")], [1, 3]]
    found = tokenizer.detokenize(tf.ragged.constant(ids)).numpy()
    assert [text.decode() for text in found] == ["ab 日本 ü", "<unk>"]


def test_saved_and_loaded(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    names = {"tokenizer.json", "sentencepiece.model", "vocab.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    again = load_tokenizer(tmp_path)
    assert again.vocabulary == TOKENS
    texts = tf.constant([">>fra<< a b日本", "c\tb"])
    assert again.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list()


def test_mistakes(model):
    refused("`model` must be a serialized SentencePiece model", MarianTokenizer, b"abc", TOKENS)
    refused("`model` must be the bytes of a model", MarianTokenizer, "abc", TOKENS)
    refused("must begin with the special tokens", MarianTokenizer, model, TOKENS[1:])
    with pytest.raises(UserError, match=r"`vocab.json` must be among the assets"):
        MarianTokenizer.from_config({}, {"sentencepiece.model": model})

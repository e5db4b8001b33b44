"""The mask token of kinds that have it on request: ids, texts, saving."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.tokenizers import load_tokenizer, train_tokenizer
from tests.refusals import refused
from tests.tokenizers.golden import decoded

TEXTS = ["ab b", "B a"]
KINDS = {
    "characters": ({}, [["a", "b", " ", "[MASK]", "b"], ["[MASK]", "[MASK]"]]),
    "symbols": ({}, [["<unk>", "[MASK]", "b"], ["[MASK]", "[MASK]"]]),
    "byte_level_bpe": (
        {"vocabulary_size": 261},
        [["a", "b", "Ġ", "[MASK]", "b"], ["[MASK]", "[MASK]"]],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_last_token_and_texts_contain_it(kind, tmp_path):
    options, expected = KINDS[kind]
    tokenizer = train_tokenizer(kind, TEXTS, with_mask=True, **options)
    last = tokenizer.vocabulary_size - 1
    assert (tokenizer.mask_id, tokenizer.vocabulary[-1]) == (last, "[MASK]")
    assert np.flatnonzero(tokenizer.is_special).tolist() == [0, 1, 2, 3, last]
    texts = ["ab [MASK]b", "[MASK][MASK]"] if kind != "symbols" else ["x [MASK] b", "[MASK][MASK]"]
    ids = tokenizer.tokenize(texts)
    assert [[tokenizer.vocabulary[one] for one in row] for row in ids.to_list()] == expected
    if kind != "symbols":
        assert decoded(tokenizer.detokenize(ids)) == texts
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert (loaded.mask_id, loaded.digest) == (last, tokenizer.digest)
    assert loaded.tokenize(texts).to_list() == ids.to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_without_it_the_text_is_ordinary_and_the_other_ids_are_the_same(kind):
    options, _ = KINDS[kind]
    without, with_mask = (
        train_tokenizer(kind, TEXTS, with_mask=one, **options) for one in (False, True)
    )
    assert without.mask_id is None
    assert "with_mask" not in without.get_config()
    assert with_mask.vocabulary == [*without.vocabulary, "[MASK]"]
    assert without.tokenize(TEXTS).to_list() == with_mask.tokenize(TEXTS).to_list()
    assert (without.tokenize(["[MASK]"]).values.numpy() < without.vocabulary_size).all()


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_never_lower_cased(kind):
    options, _ = KINDS[kind]
    tokenizer = train_tokenizer(kind, TEXTS, with_mask=True, lowercase=True, **options)
    (masked,), (small,) = (tokenizer.tokenize([text]).to_list() for text in ("B [MASK]", "b"))
    assert (masked[0], masked[-1]) == (small[0], tokenizer.mask_id)


def test_bytes_of_tokens():
    tokenizer = train_tokenizer("byte_level_bpe", TEXTS, vocabulary_size=261, with_mask=True)
    ids = tokenizer.tokenize(["é [MASK]"]).to_list()[0]
    assert tokenizer.bytes_of(tf.constant(ids)).numpy().tolist() == [
        *(b"\xc3", b"\xa9", b" ", b"[MASK]")
    ]
    symbols = train_tokenizer("symbols", TEXTS)
    assert symbols.bytes_of(tf.constant([[4]])).numpy().tolist() == [[b"B"]]


def test_mistakes():
    message = "`vocabulary_size` must be at least 261. Received: vocabulary_size=260"
    options = {"vocabulary_size": 260, "with_mask": True}
    refused(message, train_tokenizer, "byte_level_bpe", TEXTS, **options)

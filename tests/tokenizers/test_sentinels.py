"""SentencePiece vocabularies with T5's sentinels, by the library itself as the judge."""

import numpy as np
import pytest
import sentencepiece

from keras_attn.tokenizers import (
    SentencePieceTokenizer,
    load_tokenizer,
    sentinel_ids,
    sentinel_tokens,
    train_tokenizer,
)
from keras_attn.validation import UserError
from tests.tokenizers.test_sentencepiece import corpus, decoded

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    texts = [*corpus(), *["karo <extra_id_0> mi<extra_id_1>"] * 50]
    return SentencePieceTokenizer.train(texts, 80, request.param, sentinels=7)


def test_sentinels_are_the_last_ids(tokenizer):
    vocabulary = tokenizer.vocabulary
    assert len(vocabulary) == tokenizer.vocabulary_size == 80
    assert vocabulary[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert vocabulary[73:] == [f"<extra_id_{number}>" for number in (6, 5, 4, 3, 2, 1, 0)]
    assert vocabulary[73:] == sentinel_tokens(7)
    assert not any("extra" in piece for piece in vocabulary[:73])
    assert sentinel_ids(tokenizer).tolist() == [79, 78, 77, 76, 75, 74, 73]
    assert sentinel_ids(tokenizer).dtype == np.dtype("int32")


def test_texts_between_sentinels_are_read_by_themselves(tokenizer):
    (model,) = tokenizer.assets().values()
    judge = sentencepiece.SentencePieceProcessor(model_proto=model)
    texts = corpus(sentences=20, seed=13)
    assert tokenizer.tokenize(texts).to_list() == judge.encode(texts)
    found = tokenizer.tokenize(["karo <extra_id_0> mi<extra_id_6>", "<extra_id_7>"]).to_list()
    assert found == [[*judge.encode("karo"), 79, *judge.encode("mi"), 73], found[1]]
    assert not set(found[1]) & set(range(73, 80))  # there is no such sentinel
    assert decoded(tokenizer.detokenize([found[0]])) == ["karo<extra_id_0> mi<extra_id_6>"]


def test_training_is_deterministic_and_saved(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer")
    again = load_tokenizer(tmp_path / "tokenizer")
    assert again.assets() == tokenizer.assets()
    assert again.get_config() == tokenizer.get_config()
    texts = ["karo <extra_id_3> mi"]
    assert again.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list()
    first, second = (SentencePieceTokenizer.train(corpus(), 71, sentinels=3) for _ in range(2))
    assert first.assets() == second.assets()


def test_without_sentinels_nothing_changes():
    texts = corpus()
    plain, none = (
        SentencePieceTokenizer.train(texts, 71, **more) for more in ({}, {"sentinels": 0})
    )
    assert plain.assets() == none.assets()
    assert plain.get_config()["special_tokens"] == none.get_config()["special_tokens"] == []
    assert sentinel_ids(plain).tolist() == []
    assert sentinel_ids(train_tokenizer("characters", ["<extra_id_0>"])).tolist() == []


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_limits_of_the_vocabulary_count_the_sentinels(model_type):
    def train(size):
        texts = corpus(sentences=29)
        return SentencePieceTokenizer.train(texts, size, model_type, sentinels=5)

    most = train(5003)
    size = most.vocabulary_size
    assert sentinel_ids(most).tolist() == [size - number for number in range(1, 6)]
    plain = SentencePieceTokenizer.train(corpus(sentences=29), 5003, model_type)
    assert size == plain.vocabulary_size + 5
    assert train(size - 1).vocabulary_size == size - 1


def test_mistakes():
    with pytest.raises(UserError, match=r"at least 10\. Received: vocabulary_size=9\."):
        SentencePieceTokenizer.train(["abc"], vocabulary_size=9, sentinels=5)
    # Special tokens, sentinels, a, b, c and the mark of a word's beginning.
    with pytest.raises(UserError, match=r"at least 13 for these texts .*vocabulary_size=12\."):
        SentencePieceTokenizer.train(["abc ab abc"], vocabulary_size=12, sentinels=5)
    for wrong in (-1, True, 1.5):
        with pytest.raises(UserError, match=f"whole number, 0 or more. Rec.*: sentinels={wrong}"):
            SentencePieceTokenizer.train(["abc"], 71, sentinels=wrong)

"""What every tokenizer promises, whatever its kind."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.tokenizers import Tokenizer, train_tokenizer
from keras_attn.tokenizers.base import SPECIAL_TOKENS
from keras_attn.tokenizers.characters import CharacterTokenizer
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.tokenizers.golden import KINDS, decoded

TEXTS = ["the cat sat on the mat", "a dog ate the cat", "the 7 mats", "cat a dog"] * 5
SPECIAL_IDS = dict.fromkeys(KINDS, (0, 1, 2, 3)) | {"word_piece": (0, 2, 3, 1)}
SPACES = {"sentencepiece": "▁", "byte_level_bpe": "Ġ"}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return train_tokenizer(request.param, TEXTS, **KINDS[request.param])


def test_special_ids_and_vocabulary(tokenizer):
    ids = (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id)
    assert ids == SPECIAL_IDS[tokenizer.kind]
    first = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    expected = first if tokenizer.kind == "word_piece" else ["<pad>", "<s>", "</s>", "<unk>"]
    assert tokenizer.vocabulary[:4] == expected
    assert list(SPECIAL_TOKENS) == ["<pad>", "<s>", "</s>", "<unk>"]
    assert len(tokenizer.vocabulary) == tokenizer.vocabulary_size
    assert type(tokenizer.vocabulary) is list
    assert tokenizer.vocabulary.index("a" if tokenizer.kind != "sentencepiece" else "▁a") > 3
    unknown = expected[tokenizer.unknown_id]
    assert [tokenizer.id_to_token(i) for i in (0, tokenizer.unknown_id, 5)] == [
        expected[0],
        unknown,
        tokenizer.vocabulary[5],
    ]
    assert tokenizer.id_to_token(10_007) == tokenizer.id_to_token(-1) == unknown


def test_texts_come_back(tokenizer):
    ids = tokenizer.tokenize(tf.constant(TEXTS))
    assert isinstance(ids, tf.RaggedTensor)
    assert ids.dtype == tf.int32
    assert ids.shape.as_list() == [len(TEXTS), None]
    assert int(tf.reduce_min(ids.values)) > 3
    assert int(tf.reduce_max(ids.values)) < tokenizer.vocabulary_size
    assert decoded(tokenizer.detokenize(ids.to_tensor())) == TEXTS
    assert decoded(tokenizer.detokenize(ids)) == TEXTS


def test_ids_spell_the_vocabulary(tokenizer):
    (ids,) = tokenizer.tokenize(["the cat"]).to_list()
    tokens = [tokenizer.id_to_token(token_id) for token_id in ids]
    spelled = tokenizer.separator.join(tokens).replace(SPACES.get(tokenizer.kind, " "), " ")
    assert spelled.replace(" ##", "").strip() == "the cat"


def test_what_follows_the_end_is_dropped(tokenizer):
    (ids,) = tokenizer.tokenize(["a dog"]).to_list()
    (other,) = tokenizer.tokenize(["mat"]).to_list()
    length = len(ids) + len(other) + 7
    start, end = tokenizer.start_id, tokenizer.end_id
    rows = [[start, *ids, end, *other, end], [start, 0, *ids, 0, 0, end], [*ids], [end, *ids], []]
    padded = np.array([row + [0] * (length - len(row)) for row in rows])
    for dtype in ("int32", "int64"):
        strings = tokenizer.detokenize(tf.constant(padded.astype(dtype)))
        assert decoded(strings) == ["a dog", "a dog", "a dog", "", ""]


def test_unknown_ids_are_written_as_such(tokenizer):
    (ids,) = tokenizer.tokenize(["dog"]).to_list()
    outside = tokenizer.vocabulary_size
    unknown = tokenizer.unknown_id
    rows = [[*ids, unknown], [*ids, outside], [*ids, -7], [*ids, 2**31 - 1]]
    written = f"dog{tokenizer.separator}{tokenizer.vocabulary[unknown]}"
    assert decoded(tokenizer.detokenize(rows)) == [written] * 4


def test_no_rows_and_no_columns(tokenizer):
    ids = tokenizer.tokenize(tf.constant([], tf.string))
    assert ids.to_list() == []
    assert tokenizer.tokenize(["", "a", ""]).row_lengths().numpy().tolist() == [0, 1, 0]
    assert tokenizer.detokenize(tf.zeros((0, 5), tf.int32)).shape == (0,)
    assert decoded(tokenizer.detokenize(tf.zeros((3, 0), tf.int32))) == ["", "", ""]


def test_malformed_bytes_leave_their_neighbours_alone(tokenizer):
    strings = [b"a dog", b"\xff\xfe", b"the cat", b"a \xed\xa0\x80", b"\xf0\x9f", b"mat"]
    ids = tokenizer.tokenize(tf.constant(strings))
    good = tokenizer.tokenize(["a dog", "the cat", "mat"]).to_list()
    assert [ids.to_list()[k] for k in (0, 2, 5)] == good
    back = decoded(tokenizer.detokenize(ids.to_tensor()))
    assert [back[k] for k in (0, 2, 5)] == ["a dog", "the cat", "mat"]
    for k in (1, 3, 4):
        # BERT drops U+FFFD, bytes spell it.
        assert {"word_piece": "", "byte_level_bpe": "\ufffd"}.get(tokenizer.kind, "<unk>") in back[
            k
        ]


def test_the_same_in_a_graph(tokenizer):
    text = tf.constant(["the cat", "", "dog"])
    function = tf.function(
        lambda strings: tokenizer.tokenize(strings).to_tensor(),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    np.testing.assert_array_equal(function(text), tokenizer.tokenize(text).to_tensor())
    back = tf.function(
        tokenizer.detokenize, input_signature=[tf.TensorSpec([None, None], tf.int64)]
    )
    assert decoded(back(tf.cast(function(text), tf.int64))) == ["the cat", "", "dog"]


def test_survives_a_new_seed_and_a_cleared_session(tokenizer):
    text = tf.constant(["the cat"])
    function = tf.function(lambda strings: tokenizer.tokenize(strings).to_tensor())
    expected = function(text).numpy().tolist()
    keras.utils.set_random_seed(5)
    keras.backend.clear_session()
    assert function(text).numpy().tolist() == expected
    assert tokenizer.tokenize(text).to_list() == expected
    assert decoded(tokenizer.detokenize(expected)) == ["the cat"]


def test_in_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3).map(tokenizer.tokenize)
    rows = [row for batch in dataset for row in batch.to_list()]
    assert rows == tokenizer.tokenize(TEXTS).to_list()


def test_wrong_ranks(tokenizer):
    refused(r"`strings` .*\(batch,\).* Received: shape=\(\)\.", tokenizer.tokenize, "the cat")
    refused(r"`strings` .* Received: shape=\(1, 1\)\.", tokenizer.tokenize, [["the cat"]])
    with pytest.raises(UserError, match=r"`ids` .*\(batch, length\).* Received: shape=\(3,\)\."):
        tokenizer.detokenize([4, 5, 6])


def test_config_is_json_and_complete(tokenizer):
    config = json.loads(json.dumps(tokenizer.get_config()))
    copy = type(tokenizer).from_config(config, tokenizer.assets())
    assert copy.vocabulary == tokenizer.vocabulary
    assert copy.get_config() == tokenizer.get_config()
    assert copy.tokenize(TEXTS).to_list() == tokenizer.tokenize(TEXTS).to_list()


def test_the_base_class_stands_for_no_kind():
    with pytest.raises(TypeError, match="abstract"):
        Tokenizer(["<pad>", "<s>", "</s>", "<unk>"])


@pytest.mark.parametrize("kind", KINDS)
def test_lowercase_holds_for_training_and_use(kind):
    texts = [text.upper() for text in TEXTS]
    tokenizer = train_tokenizer(kind, texts, lowercase=True, **KINDS[kind])
    judge = train_tokenizer(kind, TEXTS, **KINDS[kind])
    assert tokenizer.vocabulary == judge.vocabulary
    assert tokenizer.tokenize(["The CAT"]).to_list() == judge.tokenize(["the cat"]).to_list()
    if kind != "byte_level_bpe":  # which knows every text
        assert judge.unknown_id in judge.tokenize(["The CAT"]).to_list()[0]
    assert tokenizer.get_config()["lowercase"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_cannot_be_trained_on(kind):
    refused(r"`texts` must be a collection .*texts='one text'", train_tokenizer, kind, "one text")
    refused(r"`texts\[1\]` must be Unicode text.*text=7", train_tokenizer, kind, ["a", 7])
    refused(r"`texts\[0\]` must be Unicode text.*text='\\udcff'", train_tokenizer, kind, ["\udcff"])
    for nothing in ([], [""], iter(())):
        refused("`texts` must contain", train_tokenizer, kind, nothing)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_read_once_from_any_iterable(kind):
    tokenizer = train_tokenizer(kind, (text for text in TEXTS), **KINDS[kind])
    assert tokenizer.vocabulary == train_tokenizer(kind, TEXTS, **KINDS[kind]).vocabulary


def test_a_vocabulary_of_lone_surrogates_is_refused():
    refused(r"Token 5 must be Unicode text.*token='\\ud800'", CharacterTokenizer, ["a", "\ud800"])

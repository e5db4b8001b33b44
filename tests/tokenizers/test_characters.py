import random
import sys

import tensorflow as tf

from keras_attn.tokenizers import CharacterTokenizer
from tests.refusals import refusals, refused
from tests.tokenizers.golden import decoded


def test_ids_by_hand():
    tokenizer = CharacterTokenizer.train(["bab", "a b", "é"])
    # b three times, a twice, then space and é once each, by code point.
    assert tokenizer.vocabulary[4:] == ["b", "a", " ", "é"]
    assert tokenizer.tokenize(["abé", "x b", ""]).to_list() == [[5, 4, 7], [3, 6, 4], []]
    assert decoded(tokenizer.detokenize([[5, 4, 7], [3, 6, 4], [0, 0, 0]])) == [
        "abé",
        "<unk> b",
        "",
    ]


def test_any_covered_text_round_trips_exactly():
    generator = random.Random(11)
    known = "\0\t\n\r\x0b\x1b\x7f\x80\x85 a\u0301é\u200d\u2028\ufeff\ufdd0\ufffd\uffff"
    known += "\U0001f469\U0010ffff"
    points = [generator.randrange(sys.maxunicode + 1) for _ in range(3001)]
    pool = known + "".join(chr(point) for point in points if not 0xD800 <= point <= 0xDFFF)
    texts = ["".join(generator.choices(pool, k=generator.randint(0, 23))) for _ in range(503)]
    texts += [known, "\0", "\0\0", " ", "  a  ", "\n", "e\u0301\u0301", "\ufeffa"]
    texts += ["👩\u200d👩\u200d👧"]
    tokenizer = CharacterTokenizer.train([pool, *texts])
    ids = tokenizer.tokenize(texts)
    assert ids.row_lengths().numpy().tolist() == [len(text) for text in texts]
    assert 3 not in ids.values.numpy()
    assert decoded(tokenizer.detokenize(ids.to_tensor())) == texts


def test_malformed_bytes_are_a_replacement_character_each():
    strings = tf.constant([b"a\xff\xfeb", b"\xf0\x9fa", "a\ufffd".encode()])
    unaware = CharacterTokenizer(["a", "b"])
    assert unaware.tokenize(strings).to_list() == [[4, 3, 3, 5], [3, 4], [4, 3]]
    aware = CharacterTokenizer(["a", "b", "\ufffd"])
    assert aware.tokenize(strings).to_list() == [[4, 6, 6, 5], [6, 4], [4, 6]]
    assert decoded(aware.detokenize([[4, 6, 6, 5]])) == ["a\ufffd\ufffdb"]


def test_min_count():
    texts = ["aaab", "bbc"]
    assert CharacterTokenizer.train(texts, min_count=1).vocabulary[4:] == ["a", "b", "c"]
    assert CharacterTokenizer.train(texts, min_count=3).vocabulary[4:] == ["a", "b"]
    message = r"at least `min_count`.*min_count=4, distinct_characters=3"
    refused(message, CharacterTokenizer.train, texts, min_count=4)
    message = r"`min_count` must be a positive.* min_count=0\."
    refused(message, CharacterTokenizer.train, texts, min_count=0)


def test_characters_outside_the_basic_plane_sort_by_code_point():
    # UTF-16 order would put the emoji before U+FFFD.
    vocabulary = CharacterTokenizer.train(["\U0001f600\ufffda"]).vocabulary
    assert vocabulary[4:] == ["a", "\ufffd", "\U0001f600"]


test_wrong_vocabularies = refusals(
    CharacterTokenizer,
    ({"characters": ["a", "bc"]}, r"`characters\[1\]` must be a single character.*character='bc'"),
    ({"characters": ["a", ""]}, r"`characters\[1\]` must be a single character.*character=''"),
    ({"characters": []}, r"`characters` must not be empty.*characters=\[\]"),
    ({"characters": [7]}, r"`characters\[0\]` must be a single character.*character=7"),
    ({"characters": ["a", "b", "a"]}, r"must not contain a token twice\. Received: token='a'"),
)

"""Python's `str.lower` is the judge."""

import random
import sys

import pytest
import tensorflow as tf

from keras_attn.tokenizers.lowercase import Lowercase
from tests.tokenizers.golden import decoded


@pytest.fixture(scope="module")
def lower():
    return Lowercase()


def test_every_character_like_python(lower):
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    lowered = decoded(lower(tf.constant(characters)))
    pairs = zip(characters, lowered, strict=True)
    assert [character for character, other in pairs if other != character.lower()] == []


def test_sigma_in_every_context_like_python(lower):
    generator = random.Random(3)
    pool = "ΣΣΣΣςЖжbZ7 '.:-_,\n\0\u0301\u0345\u00ad\u02b0ªⅧⓐ中א\U0001f600\u2019İ\u0130\ufffd"
    texts = ["".join(generator.choices(pool, k=generator.randint(1, 11))) for _ in range(20_011)]
    assert decoded(lower(tf.constant(texts))) == [text.lower() for text in texts]
    final = sum("ς" in text.lower() and "ς" not in text for text in texts)
    assert final > 1000  # the rule was really put to the test


def test_known_words(lower):
    strings = lower(tf.constant(["ΟΔΥΣΣΕΥΣ ΣΟΦΟΣ.", "TITLE I", "İ", "A\0B", "ẞ ÀÉ"]))
    assert decoded(strings) == ["οδυσσευς σοφος.", "title i", "i\u0307", "a\0b", "ß àé"]


def test_malformed_bytes_become_replacement_characters(lower):
    strings = lower(tf.constant([b"A\xffB", b"OK", b""])).numpy()
    assert strings.tolist() == ["a\ufffdb".encode(), b"ok", b""]


def test_nothing_in_the_graph_depends_on_the_locale(lower):
    graph = tf.function(lower).get_concrete_function(tf.TensorSpec([None], tf.string)).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert "StaticRegexReplace" in kinds
    assert not kinds & {"StringLower", "StringUpper", "CaseFoldUTF8"}

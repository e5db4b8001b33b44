"""`transformers` is the judge of ids, the `tokenizers` library that of words."""

import itertools
import sys

import pytest
import tensorflow as tf
from tokenizers import normalizers, pre_tokenizers

from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.tokenizers.bert_words import BertWords
from keras_attn.validation import UserError
from tests.refusals import message_of, refused
from tests.tokenizers.golden import GOLDEN, differing, pages

pytestmark = pytest.mark.tensorflow

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["Unaffable affairs, un-fair!", "naïve CAFÉ 你好 café", "a fable unable"] * 3


def words_of_the_library(texts, lowercase, strip_accents, split_chinese):
    normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=split_chinese,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    split = pre_tokenizers.BertPreTokenizer()
    return [
        [word for word, _ in split.pre_tokenize_str(normalizer.normalize_str(text))]
        for text in texts
    ]


@pytest.mark.parametrize("name", ["cased", "uncased"])
@pytest.mark.parametrize("split", [False, True])
def test_ids_are_those_of_transformers(name, split):
    tokenizer = WordPieceTokenizer(
        GOLDEN[name]["tokens"], lowercase=name == "uncased", split_special_tokens=split
    )
    assert differing(tokenizer, GOLDEN[name]["ids_split" if split else "ids"]) == []


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "split_chinese"),
    [
        (True, True, True),
        (False, False, True),
        pytest.param(True, False, False, marks=pytest.mark.slow),
        pytest.param(False, True, False, marks=pytest.mark.slow),
    ],
)
def test_every_code_point(lowercase, strip_accents, split_chinese):
    texts = pages(between="b")
    received = BertWords(lowercase, strip_accents, split_chinese)(tf.constant(texts)).to_list()
    judged = words_of_the_library(texts, lowercase, strip_accents, split_chinese)
    for text, words, expected in zip(texts, received, judged, strict=True):
        assert [word.decode() for word in words] == expected, hex(ord(text[1]))


def test_neighbours_do_not_matter():
    characters = ["A", "é", "\u0301", "\u0323", " ", "\u00a0", "你", "'", "Σ", "\u200d", "각", "\0"]
    texts = ["".join(text) for text in itertools.product(characters, repeat=4)]
    received = BertWords(True, True, True)(tf.constant(texts)).to_list()
    judged = words_of_the_library(texts, True, True, True)
    assert [[word.decode() for word in row] for row in received] == judged


def test_the_longest_piece_first():
    pieces = ["un", "##aff", "##able", "##a", "##f", "una", "##b", "[unused1]"]
    tokenizer = WordPieceTokenizer([*SPECIAL, *pieces])
    texts = ["unaff", "unaffable un", "una unab ununa", "[unused1]", "[UNK]"]
    # "unaff" begins with "una", after which "##f" follows twice, and nothing does after "ununa"'s
    # "un": the word is unknown as a whole.
    una, f, able, b, un = (
        5 + pieces.index(piece) for piece in ("una", "##f", "##able", "##b", "un")
    )
    assert tokenizer.tokenize(texts).to_list() == [
        [una, f, f],
        [una, f, f, able, un],
        [una, una, b, 1],
        [1, 1, 1],
        [1],
    ]
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id) == (0, 2, 3)
    assert (tokenizer.unknown_id, tokenizer.mask_id) == (1, 4)


def test_special_tokens_anywhere_and_in_texts():
    tokens = ["b", "[MASK]", "##c", "[SEP]", "[UNK]", "[", "]", "MASK", "[CLS]", "[PAD]"]
    tokenizer = WordPieceTokenizer(tokens)
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id) == (9, 8, 3)
    assert (tokenizer.unknown_id, tokenizer.mask_id) == (4, 1)
    assert tokenizer.tokenize(["b[MASK]bc", "[MASK", "\0[SEP]\0b"]).to_list() == [
        [0, 1, 0, 2],
        [5, 7],
        [3, 0],
    ]
    plain = WordPieceTokenizer(tokens, split_special_tokens=True)
    assert plain.tokenize(["b[MASK]bc"]).to_list() == [[0, 5, 7, 6, 0, 2]]
    ids = tf.constant([[8, 0, 2, 1, 0, 3, 0], [2, 77, 9, 9, 9, 9, 9]])
    assert [text.decode() for text in tokenizer.detokenize(ids).numpy()] == [
        "bc [MASK] b",
        "c [UNK]",
    ]


def test_training_gives_the_same_each_time():
    options = {"vocabulary_size": 61, "lowercase": True}
    first = WordPieceTokenizer.train(TEXTS, **options)
    assert first.vocabulary[:5] == SPECIAL
    assert first.vocabulary_size <= 61
    begins = [token for token in first.vocabulary[5:] if len(token) == 1]
    assert begins == sorted(begins)
    assert "é" not in "".join(first.vocabulary)
    for _ in range(2):
        assert WordPieceTokenizer.train(TEXTS, **options).vocabulary == first.vocabulary
    assert first.unknown_id not in first.tokenize(TEXTS).values.numpy()
    kept = WordPieceTokenizer.train(TEXTS, strip_accents=False, **options)
    assert "é" in "".join(kept.vocabulary)


def test_training_mistakes(monkeypatch):
    with pytest.raises(UserError, match=r"at least \d+ for these texts.*vocabulary_size=7"):
        WordPieceTokenizer.train(TEXTS, vocabulary_size=7)
    refused("`min_count` must be a positive integer", WordPieceTokenizer.train, TEXTS, min_count=0)
    refused("a text that is not blank", WordPieceTokenizer.train, [" \u00a0", "\0"])
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"needs the `tokenizers` library: pip install 'keras_attn"):
        WordPieceTokenizer.train(TEXTS)


def failure(path):
    message = message_of(WordPieceTokenizer.from_file, path)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_files(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join([*SPECIAL, "a", "\u2028", "##b"]).encode())
    tokenizer = WordPieceTokenizer.from_file(path, lowercase=True)
    assert tokenizer.vocabulary == [*SPECIAL, "a", "\u2028", "##b"]
    assert tokenizer.tokenize(["Ab"]).to_list() == [[5, 7]]
    assert tokenizer.assets() == {"vocab.txt": "\n".join([*tokenizer.vocabulary, ""]).encode()}


def test_malformed_files(tmp_path):
    path = tmp_path / "vocab.txt"
    assert failure(path) == "no such file."
    assert failure(tmp_path) == "expected a regular file."
    for lines, message in (
        ([*SPECIAL, "a", "b", "a"], "must not contain a token twice. Received: token='a'."),
        ([token for token in SPECIAL if token != "[UNK]"], "contain the special token [UNK]."),
        ([token for token in SPECIAL if token != "[MASK]"], "contain the special token [MASK]."),
        ([], "contain the special token [PAD]."),
    ):
        path.write_text("\n".join(lines))
        assert failure(path).endswith(message)
    path.write_bytes(b"\xff\n")
    assert failure(path).startswith("expected a UTF-8 file: 'utf-8' codec can't decode")

"""`transformers` is the judge of ids, the `tokenizers` library that of words."""

import itertools
import json
import random
import sys

import pytest
import tensorflow as tf
from tokenizers import pre_tokenizers

from keras_attn.tokenizers import ByteLevelBpeTokenizer
from keras_attn.tokenizers.byte_words import ByteWords, byte_characters
from keras_attn.validation import UserError
from tests.refusals import message_of, refused
from tests.tokenizers.golden import GOLDEN, decoded, differing, pages

pytestmark = pytest.mark.tensorflow

BYTES = byte_characters()
END = "<|endoftext|>"
TEXTS = ["The cat isn't on the mat, they've said", "das naß-kalte  Wetter\n", "日本 the 日本"] * 3


def golden_tokenizer(**options):
    merges = [tuple(line.split(" ")) for line in GOLDEN["byte_level_bpe"]["merges"]]
    return ByteLevelBpeTokenizer(GOLDEN["byte_level_bpe"]["tokens"], merges, **options)


def check_words(texts):
    judge = pre_tokenizers.ByteLevel(add_prefix_space=False)
    received = ByteWords()(tf.constant(texts)).to_list()
    for text, words in zip(texts, received, strict=True):
        expected = [word for word, _ in judge.pre_tokenize_str(text)]
        assert [word.decode() for word in words] == expected, ascii(text)


@pytest.mark.parametrize("split", [False, True])
def test_ids_are_those_of_transformers(split):
    tokenizer = golden_tokenizer(split_special_tokens=split)
    assert differing(tokenizer, GOLDEN["byte_level_bpe"]["ids_split" if split else "ids"]) == []


def test_words_of_all_short_texts():
    """Every text of up to five characters of each class that the pattern tells apart."""
    characters = ["x", "s", "'", " ", "\n", "7", "?"]
    for length in range(6):
        check_words(["".join(text) for text in itertools.product(characters, repeat=length)])
    check_words(["".join(text) for text in itertools.product("' stmdrvel\n", repeat=4)])


@pytest.mark.slow
def test_words_of_every_code_point():
    # Letters join "a", numbers each other, spaces nothing, and all else "?".
    check_words(pages(between="?a", times=2))


def test_every_text_comes_back():
    tokenizer = golden_tokenizer(split_special_tokens=True)
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(GOLDEN["texts"]))) == GOLDEN["texts"]
    generator = random.Random(3)
    codes = [*range(0xD800), *range(0xE000, 0x110000)]
    texts = ["".join(map(chr, generator.choices(codes, k=53))) for _ in range(211)]
    assert decoded(tokenizer.detokenize(tokenizer.tokenize(texts))) == texts


def test_broken_characters_are_replaced():
    tokenizer = golden_tokenizer()
    ids = {character: tokenizer.vocabulary.index(character) for character in BYTES}
    generator = random.Random(5)
    values = [0x41, 0x80, 0xBF, 0xC3, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0xED, 0xA0, 0xFF, 0]
    rows = [generator.choices(values, k=7) for _ in range(997)]
    strings = tokenizer.detokenize([[ids[BYTES[value]] for value in row] for row in rows])
    assert decoded(strings) == [bytes(row).decode(errors="replace") for row in rows]


def test_the_earliest_merge_first():
    merges = [("b", "c"), ("a", "a"), ("a", "b"), ("aa", "aa"), ("Ġ", "a")]
    results = [first + second for first, second in merges]
    tokenizer = ByteLevelBpeTokenizer([*BYTES, *results, END], merges)
    texts = ["abc", "ab", "aaa", "aaaaaaa", "xabcaab", " aab", " a"]
    # By hand: "bc" goes before "ab", "aa" before "ab" and from the left.
    assert [
        [tokenizer.id_to_token(token) for token in row]
        for row in tokenizer.tokenize(texts).to_list()
    ] == [
        ["a", "bc"],
        ["ab"],
        ["aa", "a"],
        ["aaaa", "aa", "a"],
        ["x", "a", "bc", "aa", "b"],
        ["Ġ", "aa", "b"],
        ["Ġa"],
    ]


def test_gpt2s_single_special_token():
    tokenizer = golden_tokenizer()
    end = tokenizer.vocabulary.index(END)
    assert {tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id} == {end}
    (ids,) = tokenizer.tokenize(["a\0 b"]).to_list()
    assert tokenizer.tokenize([f"a\0 b{END}"]).to_list() == [[*ids, end]]
    rows = [[end, *ids, end, *ids], [*ids, end, end], [end, end, *ids], [end]]
    texts = tokenizer.detokenize(tf.ragged.constant(rows))
    assert decoded(texts) == ["a\0 b", "a\0 b", "", ""]


def test_two_functions_share_a_tokenizer():
    tokenizer = golden_tokenizer()
    signature = [tf.TensorSpec([None], tf.string)]
    expected = tf.function(tokenizer.tokenize, input_signature=signature)(tf.constant(TEXTS))
    again = tf.function(tokenizer.tokenize, input_signature=signature)(tf.constant(TEXTS))
    assert expected.nrows() == len(TEXTS)
    assert again.to_list() == expected.to_list() == tokenizer.tokenize(TEXTS).to_list()


def test_nothing_is_said_on_the_terminal(capfd):
    merges = [("q", "z")]  # a model that no other test has made
    ByteLevelBpeTokenizer([*BYTES, "qz", END], merges).tokenize(["qz"])
    assert capfd.readouterr() == ("", "")


def test_training_gives_the_same_each_time():
    first = ByteLevelBpeTokenizer.train(TEXTS, vocabulary_size=283)
    assert first.vocabulary[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert sorted(first.vocabulary[4:260]) == sorted(BYTES)
    assert first.vocabulary_size == 283
    assert len(first.merges) == 23
    again = ByteLevelBpeTokenizer.train(TEXTS, vocabulary_size=283)
    assert (again.vocabulary, again.merges) == (first.vocabulary, first.merges)
    assert decoded(first.detokenize(first.tokenize(TEXTS))) == TEXTS
    single = ByteLevelBpeTokenizer.train(TEXTS, vocabulary_size=271, special_tokens=[END] * 4)
    assert single.vocabulary.index(END) == single.end_id == single.pad_id == 0
    assert single.get_config()["special_tokens"] == [END] * 4


def test_training_mistakes(monkeypatch):
    with pytest.raises(UserError, match=r"at least 260.*vocabulary_size=259"):
        ByteLevelBpeTokenizer.train(TEXTS, vocabulary_size=259)
    refused("a text that is not empty", ByteLevelBpeTokenizer.train, [""])
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    refused("needs the `tokenizers` library", ByteLevelBpeTokenizer.train, TEXTS)


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([("a", "bc")], "result of each merge. Received: merge=('a', 'bc'), lacks='bc'."),
        ([("a", "d")], "result of each merge. Received: merge=('a', 'd'), lacks='ad'."),
        ([("a", "b"), ("a", "b")], "must not make a token twice. Received: merge=('a', 'b')."),
        ([("b", "a"), ("a", "b"), ("ab", "a")], "earlier merges. Received: merge=('ab', 'a')"),
        ([("ab", "a"), ("a", "b")], "earlier merges. Received: merge=('ab', 'a')"),
    ],
)
def test_merges_that_do_not_fit(merges, message):
    tokens = [*BYTES, "ab", "ba", "aba", END]
    assert message in message_of(ByteLevelBpeTokenizer, tokens, merges)


def write(folder, tokens, merges):
    vocabulary, lines = folder / "vocab.json", folder / "merges.txt"
    if isinstance(tokens, list):
        tokens = json.dumps({token: place for place, token in enumerate(tokens)})
    vocabulary.write_text(tokens, encoding="utf-8")
    lines.write_text(merges, encoding="utf-8")
    return vocabulary, lines


def test_files(tmp_path):
    files = write(tmp_path, [*BYTES, "##", END], "#version: 0.2\r\n# #\r\n")
    tokenizer = ByteLevelBpeTokenizer.from_files(*files)
    assert tokenizer.tokenize(["##b"]).to_list() == [[256, BYTES.index("b")]]
    assert tokenizer.assets()["merges.txt"] == b"#version: 0.2\n# #\n"
    assert json.loads(tokenizer.assets()["vocab.json"])[END] == 257


@pytest.mark.parametrize(
    ("tokens", "merges", "message"),
    [
        ("{", "", "{0}: valid JSON is expected: Expecting property name"),
        ("[1]", "", "{0}: a JSON object of tokens and their ids is expected."),
        ('{"a": "b"}', "", "{0}: a JSON object of tokens and their ids is expected."),
        ('{"a": 0, "a": 1}', "", "{0}: duplicate key 'a'."),
        ('{"a": 0, "b": 2}', "", "{0}: the ids must be 0 to 1, each once. Received: token='b'"),
        ([*BYTES], "", "{0}, {1}: The vocabulary must contain the special token <|endoftext|>."),
        ([*BYTES[1:], END], "", "must contain all bytes. Received: missing='Ā'."),
        ([*BYTES, END], "a b c", "{1}, line 1: two tokens and a space are expected."),
        ([*BYTES, END], "#version: 0.2\na b", "{0}, {1}: The vocabulary must contain the parts"),
    ],
)
def test_malformed_files(tokens, merges, message, tmp_path):
    files = write(tmp_path, tokens, merges)
    for place, path in enumerate(files):
        message = message.replace(f"{{{place}}}", str(path))
    assert message in message_of(ByteLevelBpeTokenizer.from_files, *files)


def test_missing_files(tmp_path):
    files = write(tmp_path, [*BYTES, END], "")
    files[1].unlink()
    refused("merges.txt: no such file.", ByteLevelBpeTokenizer.from_files, *files)
    with pytest.raises(UserError, match="absent: no such file."):
        ByteLevelBpeTokenizer.from_files(tmp_path / "absent", files[1])

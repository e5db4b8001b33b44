import json
from functools import partial

import pytest

from keras_attn import tokenizers
from tests.refusals import message_of, refused

TEXTS = ["the cat\0 sat", "on \u2028 the \U0001f600 mat"] * 7
KINDS = {
    "characters": (tokenizers.CharacterTokenizer, {}),
    "symbols": (tokenizers.SymbolTokenizer, {}),
    "sentencepiece": (tokenizers.SentencePieceTokenizer, {"vocabulary_size": 29}),
    "word_piece": (tokenizers.WordPieceTokenizer, {"vocabulary_size": 53}),
    "byte_level_bpe": (tokenizers.ByteLevelBpeTokenizer, {"vocabulary_size": 277}),
}
ASSETS = {
    "sentencepiece": {"sentencepiece.model"},
    "word_piece": {"vocab.txt"},
    "byte_level_bpe": {"vocab.json", "merges.txt"},
}


def train(kind, **options):
    return tokenizers.train_tokenizer(kind, TEXTS, **KINDS[kind][1], **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_saved_and_loaded(kind, lowercase, tmp_path):
    tokenizer = train(kind, lowercase=lowercase)
    folder = tmp_path / "assets" / "source"
    tokenizer.save(folder)
    expected = {"tokenizer.json"} | ASSETS.get(kind, set())
    assert {path.name for path in folder.iterdir()} == expected
    loaded = tokenizers.load_tokenizer(folder)
    assert type(loaded) is type(tokenizer) is KINDS[kind][0]
    assert loaded.vocabulary == tokenizer.vocabulary
    assert loaded.lowercase is lowercase
    texts = [*TEXTS, "The NEW \xff"]
    assert loaded.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list()


def test_the_file_is_plain(tmp_path):
    tokenizers.CharacterTokenizer(["b", "é", "\0"]).save(str(tmp_path))
    assert json.loads((tmp_path / "tokenizer.json").read_text("utf-8")) == {
        "kind": "characters",
        "format_version": 1,
        "config": {"characters": ["b", "é", "\0"], "lowercase": False},
        "assets": {},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_saving_twice_writes_equal_bytes_over_the_old(kind, tmp_path):
    tokenizers.CharacterTokenizer(["x"]).save(tmp_path)
    train(kind).save(tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    train(kind).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert tokenizers.load_tokenizer(tmp_path).kind == kind


def test_unknown_kinds_and_options():
    kinds = r"'characters', 'symbols', 'sentencepiece'.*kind='words'"
    refused(kinds, tokenizers.train_tokenizer, "words", TEXTS)
    options = r"'min_count', 'lowercase'.* mean 'min_count'.*'mincount'"
    refused(options, tokenizers.train_tokenizer, "characters", TEXTS, mincount=3)
    other = r"option of symbols.*'vocabulary_size'"
    refused(other, tokenizers.train_tokenizer, "symbols", TEXTS, vocabulary_size=99)


failure = partial(message_of, tokenizers.load_tokenizer)


def test_missing_files(tmp_path):
    assert failure(tmp_path / "absent") == f"{tmp_path}/absent/tokenizer.json: no such file."
    train("sentencepiece").save(tmp_path)
    (tmp_path / "sentencepiece.model").unlink()
    assert failure(tmp_path) == f"{tmp_path}/sentencepiece.model: no such file."
    (tmp_path / "file").write_text("")
    assert failure(tmp_path / "file") == f"{tmp_path}/file/tokenizer.json: no such file."
    (tmp_path / "folder" / "tokenizer.json").mkdir(parents=True)
    assert failure(tmp_path / "folder").startswith(
        f"{tmp_path}/folder/tokenizer.json: expected a regular file"
    )


def test_a_model_that_is_not_the_saved_one(tmp_path):
    train("sentencepiece").save(tmp_path)
    path = tmp_path / "sentencepiece.model"
    path.write_bytes(path.read_bytes()[:-1])
    assert failure(tmp_path).startswith(f"{path}: damaged tokenizer: its SHA-256 must be ")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "valid JSON is expected: Expecting value"),
        (b'{"kind": "characters", "conf', "valid JSON is expected: Unterminated string"),
        (b"\xff\xfe", "expected a UTF-8 file: 'utf-8' codec can't decode"),
        (b"[1, 2]", "a JSON object is expected"),
        ({"format_version": 2}, "`format_version` must be at most 1. Received: format_version=2."),
        ({"format_version": None}, "`format_version` must be at most 1."),
        ({"kind": "words"}, "byte_level_bpe, marian, pipeline. Received: kind='words'."),
        ({"kind": ["words"]}, "Received: kind=['words']."),
        ({"config": None}, "`config` must be an object. Received: config=None."),
        ({"assets": 7}, "`assets` must be an object. Received: assets=7."),
        ({"config": {}}, "damaged tokenizer: CharacterTokenizer.__init__() missing"),
        ({"config": {"characters": 5}}, "damaged tokenizer: object of type 'int'"),
        ({"config": {"characters": ["ab"]}}, "`characters[0]` must be a single character"),
        ({"config": {"characters": ["a"], "x": 1}}, "unexpected keyword argument 'x'"),
        ({"kind": "sentencepiece"}, "`sentencepiece.model` must be among the assets"),
        ({"kind": "word_piece"}, "`vocab.txt` must be among the assets"),
        ({"kind": "byte_level_bpe"}, "`vocab.json` must be among the assets"),
    ],
)
def test_damaged_descriptions(contents, message, tmp_path):
    path = tmp_path / "tokenizer.json"
    if isinstance(contents, dict):
        tokenizers.CharacterTokenizer(["a"]).save(tmp_path)
        contents = json.dumps(json.loads(path.read_text("utf-8")) | contents).encode()
    path.write_bytes(contents)
    received = failure(tmp_path)
    assert received.startswith(f"{path}: ")
    assert message in received


def test_an_interrupted_save_keeps_the_old_file(tmp_path, monkeypatch):
    tokenizers.CharacterTokenizer(["a"]).save(tmp_path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        tokenizers.CharacterTokenizer(["b"]).save(tmp_path)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    assert tokenizers.load_tokenizer(tmp_path).vocabulary[4:] == ["a"]

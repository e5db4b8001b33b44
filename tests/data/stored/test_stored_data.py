"""Texts and tokens in files: the same examples as in memory, to the bit."""

import dataclasses
import gzip
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import (
    CorruptedExamples,
    ImageExamples,
    LabelledExamples,
    MaskedExamples,
    Masking,
    PairExamples,
    Pairs,
    PartnerExamples,
    SpanCorruption,
    TaggedExamples,
    TextExamples,
    TokenRows,
    hold_out,
    read_labelled_images,
    read_pairs,
    read_tagged_texts,
)
from keras_attn.data.split import count_different
from keras_attn.data.stored.cache import Cache
from keras_attn.data.stored.texts import StoredTexts
from keras_attn.tokenizers import (
    CharacterTokenizer,
    SymbolTokenizer,
    WordPieceTokenizer,
    train_tokenizer,
)
from keras_attn.training.task_runs.vocabulary_sample import vocabulary_sample
from tests.backends import thinned
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

WORDS = ["a", "bad", "Ä", "cab", "dáda", "e", "ffff"]
LABELS = ["bad", "good", "so so"]
CHARACTERS = CharacterTokenizer("abcdáäÄef ", lowercase=True)
PIECES = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##d", "cab", "e", "f", "##f"]
)
BPE = train_tokenizer("sentencepiece", [" ".join(WORDS)] * 9, vocabulary_size=40, sentinels=4)
PLAIN_BPE = train_tokenizer("sentencepiece", [" ".join(WORDS)] * 9, vocabulary_size=24)


def texts_of(count, seed):
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(1, 7))) for _ in range(count)]


def file_of(folder, columns):
    path = folder / "data.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in zip(*columns, strict=True)))
    return path


SOURCES, TARGETS = texts_of(211, 1), texts_of(211, 2)
LABEL_OF = [LABELS[len(text) % 3] for text in SOURCES]
TAGS = [" ".join("XY"[len(word) % 2] for word in text.split()) for text in SOURCES]

HARD = ["", " ", "  a  b ", "a\tb\nc", "¨ a", "a ¨", "\u00a0a \u200b b", "e \u0301 a", "ﬁ ½"]

CASES = {
    "pairs": (TARGETS, lambda pairs: PairExamples.from_pairs(pairs, CHARACTERS, PIECES, 14, 11)),
    "words": (TARGETS, lambda pairs: PairExamples.from_pairs(pairs, PLAIN_BPE, PLAIN_BPE, 21)),
    "labels": (
        LABEL_OF,
        lambda pairs: LabelledExamples.from_pairs(pairs, CHARACTERS, LABELS, 9, with_start=True),
    ),
    "labels, long ones dropped": (
        LABEL_OF,
        lambda pairs: LabelledExamples.from_pairs(pairs, PIECES, LABELS, 9, long_texts="drop"),
    ),
    "tags": (TAGS, lambda pairs: TaggedExamples.from_pairs(pairs, PIECES, ["X", "Y"], 9)),
    "partners": (TARGETS, lambda pairs: PartnerExamples.from_pairs(pairs, CHARACTERS, 11)),
    "texts": (TARGETS, lambda pairs: TextExamples.from_texts(pairs.sources, CHARACTERS, 5)),
    "masks": (TARGETS, lambda pairs: MaskedExamples.from_texts(pairs.sources, Masking(PIECES), 7)),
    "spans": (
        TARGETS,
        lambda pairs: CorruptedExamples.from_texts(pairs.sources, SpanCorruption(BPE), 13),
    ),
}


@pytest.mark.parametrize(
    ("name", "part"),
    thinned(itertools.product(CASES, ["all", "rest", "held out", "by label"]), on_tensorflow=3),
)
def test_examples_are_those_of_texts_in_memory(name, part, tmp_path):
    targets, make = CASES[name]
    path = file_of(tmp_path, (SOURCES, targets))
    memory = Pairs(SOURCES, targets, str(path))
    stored = read_pairs(path, cache=Cache(tmp_path / "cache"))
    assert isinstance(stored.sources, StoredTexts)
    if part != "all":
        memory, stored = (
            hold_out(pairs, 60, seed=5, stratify=part == "by label")[part != "rest"]
            for pairs in (memory, stored)
        )
    for found, expected in ((stored.sources, memory.sources), (stored.targets, memory.targets)):
        assert list(found) == expected
        assert found == expected
        assert count_different(found) == count_different(expected) == len(set(expected))
        assert [found[row] for row in (0, -1, 17)] == [expected[row] for row in (0, -1, 17)]
        assert found[3:29:4] == expected[3:29:4]
    ours, theirs = make(stored), make(memory)
    assert ours.checksum == theirs.checksum
    for field in dataclasses.fields(theirs):
        value = getattr(theirs, field.name)
        if isinstance(value, int | str):
            assert getattr(ours, field.name) == value
    for epoch in (0, 1):
        rows = np.random.default_rng(epoch).permutation(len(theirs))[:23]
        for our, their in zip(
            *(flat(examples.of_epoch(epoch).assemble(rows)) for examples in (ours, theirs)),
            strict=True,
        ):
            np.testing.assert_array_equal(our, their, strict=True)


def flat(batch):
    inputs, labels = batch
    return [*inputs.values(), labels]


def entries(cache):
    return sorted(path.name.split("-")[0] for path in cache.folder.glob("[a-z]*"))


def test_what_is_kept_is_used_again(tmp_path):
    path = file_of(tmp_path, (SOURCES, TARGETS))
    cache = Cache(tmp_path / "cache")

    def tokenized(file=path, tokenizer=CHARACTERS):
        pairs = read_pairs(file, cache=cache)
        rest, _ = hold_out(pairs, 60, seed=5)
        return PairExamples.from_pairs(rest, tokenizer, tokenizer)

    first = tokenized()
    assert entries(cache) == ["texts", "tokens", "tokens"]
    path.rename(tmp_path / "moved.tsv")
    moved = tmp_path / "moved.tsv"
    assert tokenized(moved).checksum == first.checksum
    assert entries(cache) == ["texts", "tokens", "tokens"]
    tokenized(moved, PIECES)
    assert entries(cache) == ["texts", *["tokens"] * 4]
    moved.write_text(moved.read_text().replace("cab", "bac"))
    assert tokenized(moved).checksum != first.checksum
    assert entries(cache) == ["texts"] * 2 + ["tokens"] * 6


def test_notes_and_counts_are_kept(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"source,target,x\na,b,c\n,b,c\nd,e,f\n"))
    cache = Cache(tmp_path / "cache")
    found = [read_pairs(path, skip_bad_lines=True, cache=cache) for _ in range(2)]
    moved = path.rename(tmp_path / "moved.csv.gz")
    found.append(read_pairs(moved, skip_bad_lines=True, cache=cache))
    assert [pairs.skipped for pairs in found] == [1, 1, 1]
    for name, pairs in zip((path, path, moved), found, strict=True):
        assert pairs.notes == (
            f"{name}: columns source=source, target=target; not read: 'x'",
            f"malformed: {name}, line 3, column 1: expected a source, found an empty source",
        )


def test_tags_are_checked(tmp_path):
    path = file_of(tmp_path, (SOURCES, TAGS))
    stored = read_tagged_texts(path, cache=Cache(tmp_path / "cache"))
    assert list(stored.targets) == TAGS
    assert entries(Cache(tmp_path / "cache")) == ["texts"]


# Rows by lists of numbers, the plain way.
OPERATIONS = {
    "select": lambda rows: rows[1::3] + rows[:2],
    "first": lambda rows: [[77, *row] for row in rows],
    "last": lambda rows: [[*row, 88] for row in rows],
    "truncated": lambda rows: [row[:3] for row in rows],
    "cut": lambda rows: [row[at : at + 2] for row in rows for at in range(0, len(row), 2)],
}


def applied(name, rows):
    if name == "select":
        order = np.arange(len(rows))
        return rows.select(np.concatenate([order[1::3], order[:2]]))
    if name == "cut":
        return rows.cut(2)[0]
    return {
        "first": lambda: rows.with_first(77),
        "last": lambda: rows.with_last(88),
        "truncated": lambda: rows.truncated(3),
    }[name]()


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
@pytest.mark.parametrize("names", list(itertools.product(OPERATIONS, repeat=3)), ids="-".join)
def test_rows_that_share_an_array(names, dtype):
    draw = np.random.default_rng(3)
    expected = [draw.integers(1, 60_000, size).tolist() for size in (5, 0, 1, 2, 7, 3, 0, 4, 11, 2)]
    rows = TokenRows.of_lengths(
        np.concatenate(expected).astype(dtype), np.array(list(map(len, expected)))
    )
    for name in names:
        expected, rows = OPERATIONS[name](expected), applied(name, rows)
    assert len(rows) == len(expected)
    assert [rows.row(place).tolist() for place in range(len(rows))] == expected
    assert rows.lengths.tolist() == list(map(len, expected))
    assert rows.ids.tolist() == [one for row in expected for one in row]
    assert (rows.ids.dtype, rows.offsets.dtype) == (np.int32, np.int64)
    order = draw.permutation(len(rows))
    width = max(map(len, expected))
    padded = [expected[place] + [0] * (width - len(expected[place])) for place in order]
    assert rows.padded(order, (len(rows) + 1, width)).tolist() == [*padded, [0] * width]


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    [
        (PLAIN_BPE, True),
        (BPE, False),  # has special tokens
        (train_tokenizer("sentencepiece", WORDS * 9, vocabulary_size=24, lowercase=True), False),
        (
            train_tokenizer("sentencepiece", WORDS * 9, vocabulary_size=15, model_type="unigram"),
            False,
        ),
        (SymbolTokenizer(["a"]), False),
    ],
    ids=["bpe", "special tokens", "lower case", "unigram", "symbols"],
)
def test_words_are_tokenized_once_where_they_do_not_affect_each_other(tokenizer, expected):
    assert tokenizer.splits_at_spaces is expected
    texts = [*HARD, *SOURCES]
    rows = TokenRows.bare(texts, tokenizer)
    whole = tokenizer.tokenize(texts).to_list()
    assert [rows.row(place).tolist() for place in range(len(rows))] == whole


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_sample_of_a_vocabulary(is_stored, tmp_path, capsys):
    pairs = Pairs(SOURCES, TARGETS)
    if is_stored:
        pairs = read_pairs(file_of(tmp_path, (SOURCES, TARGETS)), cache=Cache(tmp_path / "cache"))
    columns = [pairs.sources, pairs.targets]
    size = sum(len(text.encode()) for text in SOURCES + TARGETS)
    assert vocabulary_sample(columns, size) == SOURCES + TARGETS
    assert not capsys.readouterr().out
    for most in (size - 1, size // 3):
        texts = SOURCES + TARGETS
        # Random texts until the next one would be too much, listed in their order.
        left, chosen = most, []
        for place in np.random.default_rng(0).permutation(len(texts)):
            left -= len(texts[place].encode())
            if left < 0:
                break
            chosen.append(place)
        assert vocabulary_sample(columns, most) == [texts[at] for at in sorted(chosen)]
        assert f"trained on {len(chosen)} of 422 texts" in capsys.readouterr().out


@pytest.fixture
def pets(tmp_path):
    """A table of images, some of them equal, one of them damaged."""
    draw = np.random.default_rng(4)
    images = [draw.integers(0, 256, (5, 7, 3), np.uint8) for _ in range(6)]
    lines = []
    for number in range(20):
        name = f"{number}.png"
        image = tf.io.encode_png(images[number % 6]).numpy()
        (tmp_path / name).write_bytes(image[:50] if number == 11 else image)
        lines.append(f"{name}\t{LABELS[number % 6 % 3]}\n")
    table = tmp_path / "pets.tsv"
    table.write_text("".join(lines))
    return table


@pytest.mark.parametrize("part", ["all", "rest", "held out"])
def test_images_are_those_in_memory(part, pets, tmp_path):
    cache = Cache(tmp_path / "cache")
    refused("11.png: the PNG image is damaged", read_labelled_images, pets, cache=cache)
    memory = read_labelled_images(pets, skip_bad_files=True)
    for _ in range(2):  # made, and opened
        stored = read_labelled_images(pets, skip_bad_files=True, cache=cache)
        assert (stored.skipped, list(stored.targets)) == (1, memory.targets)
        both = (stored, memory)
        if part != "all":
            both = tuple(hold_out(pairs, 2, seed=1)[part == "held out"] for pairs in both)
        assert list(both[0].sources) == both[1].sources
        assert [image.name for image in both[0].sources] == [one.name for one in both[1].sources]
        ours, theirs = (
            ImageExamples.from_pairs(pairs, LABELS, image_size=(3, 4), channels=3, positions=2)
            for pairs in both
        )
        assert ours.checksum == theirs.checksum
        rows = np.random.default_rng(2).permutation(len(theirs))
        for our, their in zip(flat(ours.assemble(rows)), flat(theirs.assemble(rows)), strict=True):
            np.testing.assert_array_equal(our, their, strict=True)
    assert entries(cache) == ["images", "pixels"]
    (pets.parent / "3.png").write_bytes((pets.parent / "4.png").read_bytes())
    changed = read_labelled_images(pets, skip_bad_files=True, cache=cache)
    ImageExamples.from_pairs(changed, LABELS, image_size=(3, 4), channels=3, positions=2)
    assert entries(cache) == ["images", "images", "pixels", "pixels"]


def test_labels_and_numbers_of_a_text_are_those_in_memory(tmp_path):
    labels = [["a", "é,"], [], ["b"], ["a"], ["[]", '"']]
    numbers = [[1.5, -0.1], [0.1 + 0.2, 1e30], [5e-324, 3], [0, 2], [7, 7]]
    cache = Cache(tmp_path / "cache")
    for role, rows in (("label", labels), ("number", numbers)):
        path = tmp_path / f"{role}.jsonl"
        lines = [json.dumps({"text": f"x{at}", role: row}) for at, row in enumerate(rows)]
        path.write_text("\n".join(lines), encoding="utf-8")
        roles = ("text", role)
        memory = read_pairs(path, roles=roles)
        stored = read_pairs(path, roles=roles, cache=cache)
        assert memory.targets == [tuple(row) for row in rows]
        assert list(stored.targets) == memory.targets
        assert [stored.targets[1], *stored.targets[3:]] == [memory.targets[1], *memory.targets[3:]]
    path = tmp_path / "one.tsv"
    path.write_text("x\ta\ny\tb\n")
    assert list(read_pairs(path, roles=("text", "label"), cache=cache).targets) == ["a", "b"]

"""Made-up recall tasks, solved by another reading of the texts."""

import pytest

from keras_attn.data import (
    Pairs,
    TaggedExamples,
    load_duplication,
    load_induction,
    load_recall,
    load_selective_copying,
)
from keras_attn.evaluation import tagging
from keras_attn.tasks.hypothesis import Hypothesis
from keras_attn.tasks.measuring.labels import tag_scores
from keras_attn.tokenizers import SymbolTokenizer
from tests.refusals import refusals, refused

pytestmark = pytest.mark.tensorflow

SIZES = {"train": 40, "validation": 7, "test": 11}


def recalled(words):
    """The value behind the first occurrence of a word, for words that occur before."""
    first, tags = {}, []
    for place, word in enumerate(words):
        asked = word.startswith("k") and word in first
        tags.append(words[first[word] + 1] if asked else "_")
        if word.startswith("k"):
            first.setdefault(word, place)
    return tags


def induced(words):
    return ["_"] * (len(words) - 1) + [words[words.index("!") + 1]]


def copied(words):
    symbols = [word for word in words if word[0] == "s"]
    return ["_"] * (len(words) - len(symbols)) + symbols


def duplicated(words):
    half = len(words) // 2
    assert words[:half] == words[half:]
    return ["_"] * half + words[1:half] + ["_"]


TASKS = {
    "recall": (load_recall, {"length": 50, "pairs": 12}, recalled, 50),
    "recall, full": (load_recall, {"length": 48, "pairs": 12, "values": 5}, recalled, 48),
    "induction": (load_induction, {"length": 20}, induced, 20),
    "induction, short": (load_induction, {"length": 4}, induced, 4),
    "copying": (load_selective_copying, {"length": 20, "copied": 5}, copied, 25),
    "copying, all": (load_selective_copying, {"length": 5, "copied": 5}, copied, 10),
    "duplication": (load_duplication, {"length": 30}, duplicated, 30),
}


@pytest.mark.parametrize("name", TASKS)
def test_tags_follow_from_the_text(name):
    load, arguments, solve, length = TASKS[name]
    parts = load(**arguments, **SIZES)
    assert {part: len(pairs) for part, pairs in parts.items()} == SIZES
    for pairs in parts.values():
        assert pairs.untagged == "_"
        for text, tags in zip(pairs.sources, pairs.targets, strict=True):
            assert len(text.split()) == length
            assert solve(text.split()) == tags.split()
    assert load(**arguments, **SIZES) == parts
    assert load(**arguments, **SIZES, seed=1)["train"].sources != parts["train"].sources


def test_every_key_is_asked_for_once():
    pairs = load_recall(length=64, pairs=16, **SIZES)["train"]
    for text, tags in zip(pairs.sources, pairs.targets, strict=True):
        words = text.split()
        asked = [word for word, tag in zip(words, tags.split(), strict=True) if tag != "_"]
        assert sorted(asked) == sorted(words[:32:2])


def test_texts_of_several_lengths_and_numbers_of_pairs():
    parts = load_recall(length=64, pairs=8, min_length=16, min_pairs=3, train=300, test=1)
    found = set()
    for text, tags in zip(parts["train"].sources, parts["train"].targets, strict=True):
        words, asked = text.split(), [tag for tag in tags.split() if tag != "_"]
        assert recalled(words) == tags.split()
        found.add((len(words), len(asked)))
    assert found == {(length, pairs) for length in (16, 32, 64) for pairs in (4, 8)} - {(16, 8)}


test_mistakes = refusals(
    load_recall,
    ({"pairs": 0}, "`pairs` must be a positive integer"),
    ({"pairs": 17}, "at most a quarter of `length`.*pairs=17, length=64"),
    ({"min_pairs": 9}, "`min_pairs` must not be greater than `pairs`"),
    ({"min_length": 0}, "`min_length` must be a positive integer"),
    ({"min_length": 16}, "`min_pairs` must be at most a quarter of `min_length`"),
)


def test_mistakes_of_others():
    refused("`length` must be at least 4. Received: length=3", load_induction, length=3)
    refused("`length` must be even. Received: length=5", load_duplication, length=5)
    refused("`copied` must not be greater than `length`", load_selective_copying, 3, 4)


UNTAGGED = Pairs(["a b a", "b b"], ["_ x _", "y _"], untagged="_")


def test_words_without_a_tag_are_not_learned():
    tokenizer = SymbolTokenizer(["a", "b"])
    examples = TaggedExamples.from_pairs(UNTAGGED, tokenizer, labels=["x", "y"])
    _, labels = examples.assemble([0, 1])
    assert labels.tolist() == [[0, 0, 1, 0, 0], [0, 2, 0, 0, 0]]
    refused(
        "has a label that does not occur.*'y'",
        TaggedExamples.from_pairs, UNTAGGED, tokenizer, labels=["x"],
    )  # fmt: skip


def test_words_without_a_tag_are_not_judged():
    answers = {"a b a": Hypothesis("y x y", 0.0, 0.0), "b b": Hypothesis("x y", 0.0, 0.0)}
    found = tag_scores(UNTAGGED, answers, ["tag_accuracy"])
    assert found == {"items": 2, "tag_accuracy": 50.0}
    assert tagging.tag_accuracy([["x"], ["x"]], [["x"], ["y"]]) == 50.0

"""Data that are named, with arguments behind the name."""

import pytest

from keras_attn.data import Pairs
from keras_attn.training.named_sets import SETS_OF_PAIRS, TAGGED_SETS, NamedSet, named_set
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.task_runs import TASK_RUNS
from tests.refusals import refused, refused_in_one_line

pytestmark = pytest.mark.tensorflow


def load_letters(count: int = 3, stress: bool = False) -> dict[str, Pairs]:
    return {"train": Pairs(["a"] * count, ["b" if stress else "c"] * count)}


SETS = {"letters": NamedSet(load_letters, ("stress",))}


def loaded(name, **settings):
    load = named_set(SETS, [name])
    return load(DataSettings(train=[name], **settings))["train"]


def test_arguments_behind_the_name():
    assert len(loaded("letters")) == 3
    assert len(loaded("letters:count=5")) == 5
    assert loaded("letters:count=2", stress=True).targets == ["b", "b"]


def test_other_paths_are_files():
    for paths in (
        ["letters.tsv"],
        ["other"],
        ["o" * 300],
        ["C:/letters"],
        ["recall.tsv"],
        ["a\0b:"],
        [],
    ):
        assert named_set(SETS, paths) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("letters:", "has no argument '', but: count"),
        ("letters:stress=1", "has no argument 'stress', but: count"),
        ("letters:count", "takes whole numbers from 0 such as letters:count=100"),
        ("letters:count=x", "takes whole numbers from 0 such as letters:count=100"),
        ("letters:count=-1", "takes whole numbers from 0 such as letters:count=100"),
    ],
)
def test_mistakes(name, message):
    refused(f"--data letters {message}.* Received: data='{name}'", loaded, name)


def test_arguments_that_are_replaced():
    load = named_set(SETS, ["letters:count=5"], {"count": 2})
    assert len(load(DataSettings(["letters"]))["train"]) == 2


OTHERS = {
    "twice": (SETS, ["letters:count=2,count=3"], "count is set twice"),
    "too large": (SETS, ["letters:count=99999999999"], "count must be at most 10,000,000"),
    "another task's": (
        SETS_OF_PAIRS,
        ["recall:train=10"],
        "is data for --task token_classification",
    ),
    "of no such task": ({}, ["listops"], "is data for --task classification"),
    "beside others": (SETS, ["letters", "letters:count=2"], "data by itself"),
    "misspelled": (TAGGED_SETS, ["recal:pairs=2"], "Did you mean 'recall'"),
    "misspelled, alone": ({}, ["recal"], "no such file. Did you mean the data recall"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_names_that_are_meant_otherwise(case):
    sets, paths, message = OTHERS[case]
    refused_in_one_line(message, named_set, sets, paths)


def test_a_file_may_have_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recall").write_text("a\tb\n")
    assert named_set(SETS_OF_PAIRS, ["recall"]) is None


def test_what_does_not_fit_is_one_line():
    def load_much(count: int = 1):
        raise MemoryError

    load = named_set({"much": NamedSet(load_much)}, ["much"])
    refused_in_one_line("much does not fit into the memory", load, DataSettings(["much"]))


def test_names_without_arguments():
    refused("no argument 'seed', but: none", named_set, SETS_OF_PAIRS, ["cmudict:seed=1"])


@pytest.mark.parametrize("task", ["classification", "masked_lm"])
def test_pixels_are_read_as_characters(task):
    layer = {"task": task, "preset": "arena_tiny", "data": {"train": ["pathfinder:train=3"]}}
    run = TASK_RUNS[task]
    refused(
        "Each character of pathfinder:train=3 is a pixel", run.check, RunSettings.resolve(layer)
    )
    characters = {"tokenizers": {"text": {"kind": "characters"}}}
    run.check(RunSettings.resolve(layer | characters))

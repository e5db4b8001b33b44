"""Data that are named, with arguments behind the name."""

import pytest

from keras_attn.data import Pairs
from keras_attn.training.run_settings import DataSettings
from keras_attn.training.run_texts import SETS_OF_PAIRS, NamedSet, named_set
from tests.refusals import refused

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
    for paths in (["letters.tsv"], ["letters", "letters"], ["C:/letters"], []):
        assert named_set(SETS, paths) is None


@pytest.mark.parametrize(
    "name", ["letters:", "letters:count", "letters:count=x", "letters:stress=1", "letters:count=-1"]
)
def test_mistakes(name):
    message = "--data letters takes whole numbers such as letters:count=100. Arguments: count.*"
    refused(message + f"Received: data='{name}'", loaded, name)


def test_names_without_arguments():
    refused("takes whole numbers", named_set, SETS_OF_PAIRS, ["cmudict:seed=1"])

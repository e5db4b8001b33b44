"""What is said about a run before its first update."""

import pytest

from keras_attn.data import Pairs
from keras_attn.training.reporting import description
from keras_attn.training.run_texts import Lines
from keras_attn.training.settings import TrainingSettings

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("train", "validation", "test", "expected"),
    [
        (["a", "b"], ["c"], ["d"], []),
        (["a", "b", "a"], ["c"], ["a", "d", "a"], ["2 of 3 rows of test"]),
        (["a", "b"], ["b"], ["a", "d"], ["1 of 1 rows of validation", "1 of 2 rows of test"]),
        (["a", "b", "c", "d"], ["b"], ["a"], []),  # too many to be compared
    ],
)
@pytest.mark.parametrize(
    "kind", [lambda texts: Pairs(texts, texts), lambda texts: Lines(texts, "")]
)
def test_texts_of_train_elsewhere(train, validation, test, expected, kind, capsys, monkeypatch):
    monkeypatch.setattr(description, "_MOST_COMPARED", 3)
    description.describe_overlap(
        {"train": kind(train), "validation": kind(validation), "test": kind(test)}
    )
    lines = capsys.readouterr().out.splitlines()
    found = [line.partition(" have a text of train")[0] for line in lines]
    assert found == [f"   warning: {line}" for line in expected]


@pytest.mark.parametrize(("least", "ends"), [(0, True), (99, True), (100, False)])
def test_an_early_end_is_announced_where_there_can_be_one(least, ends):
    settings = TrainingSettings(steps=100, min_steps=least, patience=3)
    assert ("do not improve" in description._end_of(settings, 10)) == ends


def test_rows_without_texts_are_not_compared(capsys):
    description.describe_overlap({"train": [1, 2], "validation": [2]})
    assert not capsys.readouterr().out

"""What is said about a run before its first update."""

import pytest

from keras_attn.data import Pairs
from keras_attn.training.reporting import description
from keras_attn.training.run_texts import Lines

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


def test_rows_without_texts_are_not_compared(capsys):
    description.describe_overlap({"train": [1, 2], "validation": [2]})
    assert not capsys.readouterr().out

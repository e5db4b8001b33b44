"""What errors.json holds, for answers made up here."""

import json

import pytest

from keras_attn.data import Pairs
from keras_attn.tasks import Hypothesis
from keras_attn.training.reporting.errors import Baseline, Judged, confusion, write_errors
from keras_attn.training.task_runs import TASK_RUNS

BASELINE = Baseline("'x', the most frequent one", {"exact_match": 50.0})


def written(folder, judged, labels=(), answered=()):
    charts = confusion(answered, labels) if labels else {}
    write_errors(folder, "some texts", judged, BASELINE, charts)
    return json.loads((folder / "errors.json").read_text())


def test_the_worst_come_first(tmp_path):
    judged = [Judged(str(error), "a", "b", error) for error in (0.2, 0.0, 0.9, 0.5)]
    found = written(tmp_path, judged)
    assert (found["items"], found["wrong"]) == (4, 3)
    assert [row[0] for row in found["worst"]] == ["0.9", "0.5", "0.2"]
    assert found["baseline"]["metrics"] == {"exact_match": 50.0}
    assert "counts" not in found


def test_labels_are_counted(tmp_path):
    answered = [("x", "x"), ("x", "y"), ("x", "y"), ("y", "y"), ("z", "x")]
    found = written(tmp_path, [Judged("s", "x", "x", 0.0)], ["x", "y", "z"], answered)
    assert found["counts"] == [[1, 2, 0], [0, 1, 0], [1, 0, 0]]
    assert found["confused"] == [["x", "y", 2], ["z", "x", 1]]


def test_of_many_labels_those_that_are_confused_are_counted(tmp_path):
    labels = [str(label) for label in range(41)]
    found = written(tmp_path, [], labels, [("1", "2"), ("1", "1"), ("3", "3")])
    assert found["confused"] == [["1", "2", 1]]
    assert (found["labels"], found["counts"]) == (["1", "2"], [[1, 1], [0, 0]])


def best(text, log_probability=0.0):
    return Hypothesis(text, log_probability, log_probability)


@pytest.mark.parametrize(
    ("task", "references", "answer", "error"),
    [
        ("seq2seq", ["a b c d"], best("a b x d"), 0.25),
        ("seq2seq", ["a b c d", "a b x d"], best("a b x d"), 0.0),
        ("seq2seq", ["house"], best("horse"), 0.2),
        ("seq2seq", ["a b"], best(""), 1.0),
        ("classification", ["x", "y"], best("y", -1.0), 0.0),
        ("classification", ["x"], best("y", 0.0), 1.0),
        ("token_classification", ["B-X O O"], best("B-X I-X I-X"), 2),
    ],
)
def test_how_wrong_an_answer_is(task, references, answer, error):
    assert TASK_RUNS[task].error(references, answer) == pytest.approx(error)


def test_baselines():
    labels = Pairs(["1", "2", "3", "4"], ["x", "x", "x", "y"], "made")
    assert (
        TASK_RUNS["classification"].baseline(labels, ["exact_match"]).metrics["exact_match"] == 75
    )
    tags = Pairs(["a b", "c d"], ["O O", "O B-X"], "made")
    found = TASK_RUNS["token_classification"].baseline(tags, ["tag_accuracy", "span_f1"])
    assert found.metrics == {"tag_accuracy": 75.0, "span_f1": 0.0}
    texts = Pairs(["a b", "c d"], ["a b", "c e"], "made")
    assert TASK_RUNS["seq2seq"].baseline(texts, ["wer"]).metrics == {"wer": 50.0}

"""Runs of several labels a text and of numbers: every form of data, learned, measured, exported."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn import metrics as judge

from keras_attn.cli import main
from keras_attn.data import Pairs, read_pairs
from keras_attn.tasks import MultiLabelClassificationTask, RegressionTask, Task, open_task
from keras_attn.training.task_runs import TASK_RUNS
from tests.refusals import refused
from tests.training.task_runs import made
from tests.written import written

pytestmark = pytest.mark.tensorflow

LABELS = [["a", "b c"], [], ["a"]]
TEXTS = ["one", "two", "three"]
ROWS = [{"text": text, "topics": labels} for text, labels in zip(TEXTS, LABELS, strict=True)]
# Forms of the same texts and labels: the content of a file, and what separates the labels.
FORMS = {
    "x.jsonl": ("\n".join(map(json.dumps, ROWS)), None),
    "x.csv": ('text,label\none,"a,b c"\ntwo,\nthree,a\n', ","),
    "of lists.csv": ('text,label\none,"[""a"", ""b c""]"\ntwo,[]\nthree,"[""a""]"\n', None),
    "of Python.csv": ("text,label\none,\"['a', 'b c']\"\ntwo,[]\nthree,['a']\n", None),
    "x.tsv": ("one\ta | b c||\ntwo\t\nthree\ta\n", "|"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read_alike(name, tmp_path):
    content, separator = FORMS[name]
    path = tmp_path / name
    path.write_text(content)
    pairs = read_pairs(path, roles=("text", "label"), separator=separator)
    assert pairs.sources == TEXTS
    assert pairs.targets == [tuple(labels) for labels in LABELS]


def test_two_aligned_files(tmp_path):
    paths = [tmp_path / "texts", tmp_path / "labels"]
    paths[0].write_text("\n".join(TEXTS) + "\n")
    paths[1].write_text("a;b c\n\na\n")
    pairs = read_pairs(paths, roles=("text", "label"), separator=";")
    assert pairs.targets == [tuple(labels) for labels in LABELS]


@pytest.mark.parametrize(
    ("content", "role", "message"),
    [
        ("one\tx\n", "number", "line 1, column 5: expected .*, found 'x' in place of a number"),
        ("one\t\n", "number", "found no number"),
        ("one\tnan\n", "number", "found 'nan' in place of a number"),
        ("one\t1_000\n", "number", "found '1_000' in place of a number"),
        ("one\t1e39\n", "number", "found '1e39', too large for float32"),
        ('one\t["a", null]\n', "label", "found a missing value in place of a label"),
        ('one\t["a", ""]\n', "label", "found \"''\" in place of a label"),
    ],
)
def test_cells_that_cannot_be(content, role, message, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(content)
    refused(message, read_pairs, path, roles=("text", role))


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    data = [
        str(made.write_data("multi_label_classification", folder / part, count, 1))
        for part, count in (("train", 300), ("test", 60))
    ]
    # The task is recognized.
    numbers = made.TRAINING | {"steps": 120, "validate_every": 60, "thresholds": "f1"}
    settings = {"training": numbers, "model": made.SIZES, "tokenizers.text": {"kind": "characters"}}
    options = [
        word
        for section, values in settings.items()
        for name, value in values.items()
        for word in ("--set", f"{section}.{name}={value}")
    ]
    command = ["train", "--preset", "encoder_tiny", "--data", data[0], "--test", data[1]]
    assert main([*command, "--out", str(folder / "run"), *options]) == 0
    return folder


@pytest.mark.slow
def test_several_labels_are_recognized_and_learned(labels, tmp_path, capsys):
    run = labels / "run"
    task = open_task(run)
    assert type(task) is MultiLabelClassificationTask
    assert task.labels == ["a", "e", "i"]
    assert task.thresholds != [0.5] * 3
    results = json.loads((run / "results.json").read_text())
    rows = [json.loads(line) for line in (labels / "test.jsonl").read_text().splitlines()]
    marks = [
        [[label in row for label in "aei"] for row in some]
        for some in ([row["labels"] for row in rows], task.predict([row["text"] for row in rows]))
    ]
    assert results["micro_f1"] == pytest.approx(100 * judge.f1_score(*marks, average="micro"))
    assert results["micro_f1"] > 95
    settings = yaml.safe_load((run / "run.yaml").read_text())
    assert settings["task"] == "multi_label_classification"
    assert settings["metrics"] == ["micro_f1", "macro_f1", "exact_match"]
    report = (run / "report.html").read_text()
    assert "Calibration" in report
    assert main(["export", str(run), str(tmp_path / "exported")]) == 0
    assert main(["verify", str(tmp_path / "exported")]) == 0
    answers = []
    for model in (run, tmp_path / "exported"):
        found = made.measured(model, labels / "test.jsonl", tmp_path / "out.json")
        assert found["micro_f1"] == pytest.approx(results["micro_f1"])
        capsys.readouterr()
        assert main(["predict", str(model), "bbabe", "bbbbb"]) == 0
        answers.append(capsys.readouterr().out.splitlines())
    assert answers[0] == answers[1]
    assert [sorted(json.loads(line)) for line in answers[0]] == [["a", "e"], []]


@pytest.mark.slow
def test_one_label_a_text_starts_from_several(labels, tmp_path):
    data = made.write_data("classification", tmp_path / "data", 40, 3)
    command = ["train", "--task", "classification", "--init", str(labels / "run"), "--data"]
    assert main([*command, str(data), "--out", str(tmp_path / "run"), "--steps", "1"]) == 0
    assert open_task(tmp_path / "run").labels == ["with x", "without"]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    return made.trained("regression", folder, (400, 60), steps=150, validate_every=75)


@pytest.mark.slow
def test_numbers_are_learned(numbers, tmp_path, capsys):
    folder, results = numbers
    task = open_task(folder / "run")
    assert type(task) is RegressionTask
    lines = [line.split("\t") for line in (folder / "train").read_text().splitlines()]
    spread = np.array([float(number) for _, number in lines])
    assert task.means == pytest.approx([spread.mean()], rel=0.02)  # of those not held out
    assert task.deviations == pytest.approx([spread.std()], rel=0.1)
    rows = [line.split("\t") for line in (folder / "test").read_text().splitlines()]
    expected = [float(number) for _, number in rows]
    found = task.predict([word for word, _ in rows])
    assert results["mae"] == pytest.approx(judge.mean_absolute_error(expected, found), rel=1e-4)
    assert results["r2"] == pytest.approx(100 * judge.r2_score(expected, found), rel=1e-4)
    assert results["r2"] > 90
    assert "Predicted and correct" in (folder / "run" / "report.html").read_text()
    assert "accuracy" not in (folder / "run" / "summary.json").read_text()
    answer = made.answers_of_a_run_and_its_export(numbers, tmp_path, capsys, "axbxc")
    assert float(answer) == pytest.approx(56, abs=5)


@pytest.mark.slow
def test_tables_of_python(tmp_path):
    """Lists, a table of pandas, and a mapping give the same task."""
    words = [f"{first}{second}" for first in "abcdef" for second in "abcdef"]
    topics = [sorted(set(word)) if word[0] < "e" else [] for word in words]
    forms = [
        list(zip(words, topics, strict=True)),
        pd.DataFrame({"text": words, "labels": topics}),
        {"text": words, "labels": topics},
    ]
    tasks = [Task.from_preset("encoder_tiny", form, model={"num_layers": 1}) for form in forms]
    for task in tasks:
        assert type(task) is MultiLabelClassificationTask
        assert task.labels == list("abcdef")
        task.fit(forms[0], validation=forms[1][:6], steps=2, batch_tokens=64, cpu_shards=1)
    for weights in zip(*(task.backbone.get_weights() for task in tasks), strict=True):
        np.testing.assert_array_equal(weights[0], weights[1])
        np.testing.assert_array_equal(weights[0], weights[2])
    found = tasks[0].evaluate(forms[1])
    assert found["items"] == 36
    sizes = [(word, [len(word), number]) for number, word in enumerate(words)]
    sizes = [(word, [number, -number / 2]) for word, (_, number) in sizes]
    task = Task.from_preset("encoder_tiny", sizes, "regression", model={"num_layers": 1})
    assert task.means == [17.5, -8.75]
    assert task.predict(words).shape == (36, 2)
    assert set(task.evaluate(sizes)) == {"items", "mae", "rmse", "r2", "pearson", "spearman"}


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        ([str(number) for number in range(21)], "21 different numbers; --task regression"),
        (["a,b", "a", "b", "a,b,c", "c,a"], "such as 'a,b' look like several ones; --label-sep"),
        (["1", "2", "3", "4", "5"], None),
        (["no, never", "yes, always"], None),
    ],
)
def test_labels_that_look_like_something_else(labels, hint):
    lines = TASK_RUNS["classification"].described(Pairs(labels, labels))
    hints = [line for line in lines if "note:" in line]
    assert hints == [] if hint is None else hint in hints[0]


def test_mistakes(labels, tmp_path, capsys):
    one = written(tmp_path / "one.tsv", ["a\tx", "b\ty", "c\tx", "d\ty"])
    command = ["train", "--preset", "encoder_tiny", "--out", tmp_path / "run", "--data", one]
    several = [*command, "--task", "multi_label_classification"]
    assert "expected labels as a list, or with what `data.label_separator`" in made.refusal(
        capsys, *several
    )
    for option, value, message in (
        ("--label-separator", "|", "has no `data.label_separator`"),
        ("--set", "training.thresholds=f1", "has no `training.thresholds`"),
    ):
        options = ["--task", "token_classification", option, value]
        assert message in made.refusal(capsys, *command, *options)
    regression = [*command, "--task", "regression"]
    assert "'x' in place of a number" in made.refusal(capsys, *regression)
    options = ["--set", "training.label_smoothing=0.1"]
    assert "Numbers are not smoothed" in made.refusal(capsys, *regression, *options)
    equal = written(tmp_path / "equal.tsv", ["a\t3", "b\t3", "c\t3"])
    refusal = made.refusal(capsys, *regression[:-3], equal, "--task", "regression")
    assert "must not all be equal" in refusal
    task = Task.from_preset("encoder_tiny", [("a", "x"), ("b", "y")], model={"num_layers": 1})
    refused("several labels each", task.fit, [("a", ["x", "y"]), ("b", [])], steps=1)

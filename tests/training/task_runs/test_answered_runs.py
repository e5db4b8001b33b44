"""Runs whose targets are what teachers answer: sequence-level, and texts without labels."""

import json
import pathlib

import numpy as np
import pytest

from keras_attn.cli import main
from keras_attn.tasks import Task, ensemble
from keras_attn.training import answers as module
from keras_attn.training.answers import RunAnswers
from tests.refusals import refused
from tests.training.made_run import run_settings, write_parts
from tests.training.task_runs.made import base, write_data
from tests.training.task_runs.test_distilled_runs import taught, train

pytestmark = pytest.mark.tensorflow


def lines_of(path):
    return pathlib.Path(path).read_text().splitlines()


def texts_of(path):
    """The texts of data that `write_data` wrote."""
    if str(path).endswith(".jsonl"):
        return [json.loads(line)["text"] for line in lines_of(path)]
    return [line.split("\t")[0] for line in lines_of(path)]


def written_answers(run, part="train"):
    lines = "".join(path.read_text() for path in sorted((run / "answers").glob(f"{part}-*")))
    return {row["input"]: row["answer"] for row in map(json.loads, lines.splitlines())}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    data = write_parts(folder)
    for seed in (1, 2):  # so long that they answer with more than nothing
        settings = run_settings(data, seed=seed, epochs=None, steps=300, batch_tokens=400)
        train(folder / f"{seed}", settings)
    return folder, data


def test_answers_are_kept_in_parts_and_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 3)
    asked = []

    def ask(inputs):
        asked.append(inputs)
        return [text.upper() for text in inputs]

    kept, inputs = RunAnswers(tmp_path / "answers"), list("abcdefgh")
    assert kept.texts("train", inputs, ask) == list("ABCDEFGH")
    assert asked == [["a", "b", "c"], ["d", "e", "f"], ["g", "h"]]
    files = sorted(path.name for path in (tmp_path / "answers").iterdir())
    assert files == [f"train-0000{number}.jsonl" for number in range(3)]
    # What an interruption left is used again; other inputs are asked for.
    (tmp_path / "answers" / files[1]).unlink()
    asked.clear()
    assert kept.texts("train", [*"abcdefg", "i"], ask) == list("ABCDEFGI")
    assert asked == [["d", "e", "f"], ["g", "i"]]
    (tmp_path / "answers" / files[0]).write_text("{\n")
    refused("train-00000.jsonl, line 1", kept.texts, "train", inputs, ask)
    made = kept.array("vectors", lambda: np.arange(3.0))
    np.testing.assert_array_equal(kept.array("vectors", lambda: 1 / 0), made)


@pytest.mark.slow
@pytest.mark.parametrize("targets", ["replace", "join"])
def test_sequences_of_teachers_take_the_place_of_targets(words, tmp_path, targets, capsys):
    folder, data = words
    teachers = [folder / "1", folder / "2"]
    how = {"kind": "sequence", "targets": targets, "beams": 3}
    out = tmp_path / "run"
    train(out, taught(run_settings(data, steps=3, epochs=None), *teachers, **how))
    found = written_answers(out)
    sources = texts_of(data["train"])
    assert list(found) == list(dict.fromkeys(sources))
    teacher = ensemble([Task.load(one) for one in teachers])
    assert list(found.values()) == teacher.predict(list(found), beams=3)
    empty = sum(not answer for answer in found.values())
    assert empty < 0.05 * len(found)
    rows = len(found) - empty + (len(sources) if targets == "join" else 0)
    output = capsys.readouterr().out
    assert f"train: {rows:,} pairs" in output
    assert f"/2: generated texts {targets} the targets\n" in output
    assert not written_answers(out, "validation"), "held-out texts keep their own targets"
    files = list((out / "answers").iterdir())
    times = [path.stat().st_mtime_ns for path in files]
    train(out, {"training": {"steps": 5}}, resume=True)
    assert [path.stat().st_mtime_ns for path in files] == times


@pytest.mark.slow
def test_student_may_have_other_tokenizers_for_sequences(words, tmp_path):
    folder, data = words
    own = {"tokenizers": {"source": {"kind": "byte_level_bpe", "vocabulary_size": 270}}}
    settings = taught(run_settings(data, steps=2, epochs=None) | own, folder / "1", kind="sequence")
    train(tmp_path / "run", settings)
    student = Task.load(tmp_path / "run")
    assert student.source_tokenizer.vocabulary_size == 270
    settings["distillation"]["kind"] = "both"
    train(tmp_path / "both", settings)
    teacher = Task.load(folder / "1")
    assert Task.load(tmp_path / "both").source_tokenizer.digest == teacher.source_tokenizer.digest


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    ["classification", "multi_label_classification", "regression", "token_classification"],
)
def test_student_of_texts_without_labels_answers_as_the_teacher(task, tmp_path, capsys):
    """The training texts have no labels: all that the student knows comes from the teacher."""
    count = 300
    data = {"train": write_data(task, tmp_path / "train", count, 1), "hold_out": 40}
    train(tmp_path / "teacher", base(task, data, epochs=8))
    teacher = Task.load(tmp_path / "teacher")
    texts = texts_of(write_data(task, tmp_path / "more", count, 5))
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    unlabeled = {"train": str(tmp_path / "texts.txt"), "hold_out": 40, "unlabeled": True}
    settings = taught(base(task, unlabeled, epochs=20), tmp_path / "teacher")
    train(tmp_path / "student", settings)
    student = Task.load(tmp_path / "student")
    test = texts_of(write_data(task, tmp_path / "test", 200, 9))
    if task == "regression":
        near = np.abs(student.predict(test) - teacher.predict(test)) < 3  # of a deviation of 6
    else:
        near = [a == b for a, b in zip(student.predict(test), teacher.predict(test), strict=True)]
    assert np.mean(near) > 0.8
    for part in ("train", "validation"):
        found = written_answers(tmp_path / "student", part)
        assert set(found) <= set(texts)
        answers = [tuple(a) if isinstance(a, list) else a for a in found.values()]
        expected = teacher.predict(list(found))
        if task == "regression":
            np.testing.assert_allclose(np.ravel(answers), expected)
        else:
            assert answers == [tuple(a) if isinstance(a, list) else a for a in expected]


@pytest.mark.slow
def test_commands(words, tmp_path, capsys):
    folder, data = words
    (tmp_path / "words.txt").write_text("abc\nfab\ndead\nabe\nfed\ncab\nabcd\n" * 2)
    sizes = json.dumps(run_settings(data)["model"])
    common = ["train", "--preset", "g2p_small", "--steps", "2", "--set", f"model={sizes}"]
    common += ["--data", str(tmp_path / "words.txt"), "--unlabeled", "--valid", data["valid"]]
    teacher = ["--teacher", str(folder / "1"), str(folder / "2")]
    assert main([*common, *teacher, "--out", str(tmp_path / "run")]) == 0
    assert list(written_answers(tmp_path / "run")) == [
        "abc",
        "fab",
        "dead",
        "abe",
        "fed",
        "cab",
        "abcd",
    ]
    capsys.readouterr()
    assert main([*common, "--out", str(tmp_path / "other")]) == 2
    error = capsys.readouterr().err
    assert "`data.unlabeled` is for tasks whose targets teachers" in error
    texts = ["train", "--task", "masked_lm", "--preset", "bert_tiny", "--unlabeled"]
    texts += ["--data", str(tmp_path / "words.txt"), *teacher, "--out", str(tmp_path / "masked")]
    assert main(texts) == 2
    assert "`data.unlabeled` is for tasks whose targets" in capsys.readouterr().err
    # Words that the teachers cannot read are left out, and counted.
    long = tmp_path / "long.txt"
    long.write_text("abc\nfab\nbad\n" + "abcdef" * 99 + "\n")
    common[common.index("--data") + 1] = str(long)
    assert main([*common, *teacher, "--out", str(tmp_path / "long")]) == 0
    assert "teachers: 1 texts are too long" in capsys.readouterr().out


@pytest.mark.slow
def test_fit_texts_without_labels_from_python(words, tmp_path):
    folder, data = words
    teacher = Task.load(folder / "1")
    student = Task.load(folder / "2")
    result = student.fit(
        ["abc", "fab", "dead", "abe"],
        validation=data["valid"],
        out=tmp_path / "run",
        teacher=teacher,
        data={"unlabeled": True},
        steps=2,
    )
    assert list(written_answers(result.folder)) == ["abc", "fab", "dead", "abe"]

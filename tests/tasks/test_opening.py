"""What can predict is opened alike: a run, a task folder, a SavedModel."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import Pairs
from keras_attn.model_versions import latest_version
from keras_attn.tasks import (
    ExportedSeq2Seq,
    Seq2SeqTask,
    measure,
    open_exported,
    open_task,
    task_folder,
)
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.tasks.made import TEXTS, assert_alike, make_task

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def task():
    return make_task()


@pytest.fixture
def exported(tiny_export):
    return tiny_export


@pytest.mark.slow
def test_an_exported_task_equals_the_task(task, exported):
    model = open_task(exported)
    assert isinstance(model, ExportedSeq2Seq)
    assert model.predict(TEXTS) == task.predict(TEXTS)
    for n_best in (1, 2):
        found, expected = (which.predict_n_best(TEXTS, n_best) for which in (model, task))
        assert_alike(found, expected, rtol=1e-4)
    targets = ["AA B", "", "CH D EH AA B CH", "D", "XX D", "B", ""]
    np.testing.assert_allclose(model.score(TEXTS, targets), task.score(TEXTS, targets), rtol=1e-4)
    perplexities = [which.perplexity(TEXTS, targets) for which in (model, task)]
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-4)


@pytest.mark.slow
def test_an_exported_task_measures_alike(task, exported):
    pairs = Pairs(["abc", "abc", "fed"], ["AA B", "B", "CH"], "made")
    values = [
        measure(which, pairs, ["per", "wer"], perplexity=True)
        for which in (task, open_task(exported))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert values[0]["items"] == 2
    assert set(values[0]) == {"items", "per", "wer", "perplexity"}


def test_measuring_counts_what_differs(task):
    texts = ["abc", "fedcba", "a"]
    right = Pairs(texts, task.predict(texts), "made")
    assert measure(task, right, ["wer"])["wer"] == 0
    wrong = Pairs(texts, ["ZZ ZZ ZZ"] * 3, "made")
    assert measure(task, wrong, ["wer"], beams=1)["wer"] == 100


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda model: model.predict(["abcdefg", "abcdefgabcd", "abcdefgabc"]),
            "^The source text must have at most 10 tokens. Received: 11 tokens in 'abcdefgabcd'.$",
        ),
        (lambda model: model.predict(["a"], beams=2), "cannot be changed. Received: beams=2."),
        (lambda model: model.predict_n_best(["a"], 3), "Received: n_best=3, exported=2."),
        (lambda model: model.predict_n_best(["a"], 0), "Received: n_best=0."),
        (lambda model: model.predict("abc"), "not one. Received: 'abc'."),
        (lambda model: model.score(["a"], []), "Received: sources=1, targets=0."),
        (
            lambda model: model.score(["a"], ["B " * 7]),
            "The target text must have at most 6 tokens",
        ),
    ],
)
def test_mistakes_with_an_exported_task(exported, call, message):
    with pytest.raises(UserError, match=message) as caught:
        call(open_exported(exported))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_export_that_was_cut_short(exported, tmp_path):
    shutil.copytree(latest_version(exported), tmp_path / "1")
    (weights,) = (tmp_path / "1" / "variables").glob("variables.data*")
    for size in (1_000, 0):
        os.truncate(weights, size)
        refused("is a damaged SavedModel", open_exported, tmp_path)


def test_no_texts_for_an_exported_task(exported):
    model = open_exported(exported)
    assert model.predict([]) == []
    assert model.score([], []) == []


def test_the_highest_version_is_opened(exported, tmp_path):
    for version in ("9", "10"):
        shutil.copytree(exported, tmp_path / "g2p" / version)
    model = open_task(tmp_path / "g2p")
    assert model.folder == tmp_path / "g2p" / "10"


def test_a_task_and_a_run_are_opened(task, tmp_path):
    task.save(tmp_path / "run" / "task")
    (tmp_path / "run" / "run.yaml").write_text("preset: g2p_small\n")
    for path in (tmp_path / "run", tmp_path / "run" / "task", str(tmp_path / "run")):
        opened = open_task(path)
        assert isinstance(opened, Seq2SeqTask)
        assert opened.predict(TEXTS) == task.predict(TEXTS)
    assert task_folder(tmp_path / "run") == tmp_path / "run" / "task"


@pytest.fixture
def model(task, exported, tmp_path):
    """A model as in `saved_models/`, with two versions and what must not be taken for one."""
    folder = tmp_path / "g2p"
    task.save(folder / "task")
    for version in ("9", "10"):
        shutil.copytree(exported, folder / version)
    (folder / "README.md").write_text("# g2p\n")
    (folder / "11").write_text("a file")
    for name in ("\N{ARABIC-INDIC DIGIT THREE}\N{ARABIC-INDIC DIGIT THREE}", "12-notes"):
        (folder / name).mkdir()
    return folder


@pytest.mark.parametrize("with_settings", [False, True])
@pytest.mark.slow
def test_a_model_folder_predicts_by_its_newest_version(task, model, with_settings):
    if with_settings:
        (model / "run.yaml").write_text("preset: g2p_small\n")
    opened = open_task(model)
    assert isinstance(opened, ExportedSeq2Seq)
    assert opened.folder == model / "10" == latest_version(model)
    assert opened.predict(TEXTS) == task.predict(TEXTS)
    assert open_task(model / "9").folder == model / "9"


def test_a_model_folder_is_trained_further_from_its_task(model):
    assert task_folder(model) == task_folder(model / "task") == model / "task"
    assert isinstance(open_task(model / "task"), Seq2SeqTask)


def test_a_model_folder_without_versions_predicts_by_its_task(model):
    for version in ("9", "10"):
        shutil.rmtree(model / version)
    opened = open_task(model)
    assert isinstance(opened, Seq2SeqTask)
    assert len(opened.predict(TEXTS)) == len(TEXTS)


def test_an_export_into_a_task_folder_leaves_it_a_task(exported, model):
    shutil.copytree(exported, model / "task" / "1")
    assert isinstance(open_task(model / "task"), Seq2SeqTask)
    assert open_task(model / "task" / "1").folder == model / "task" / "1"


@pytest.mark.slow
@pytest.mark.parametrize("settings", [False, True])
def test_a_savedmodel_without_its_task_cannot_be_trained_further(model, settings):
    shutil.rmtree(model / "task")
    if settings:
        (model / "run.yaml").write_text("preset: g2p_small\n")
    exported_task = model / "10" / "assets.extra" / "task"
    for folder in (model, model / "10"):
        assert task_folder(folder) == exported_task
    assert Seq2SeqTask.load(model).predict(TEXTS) == open_task(exported_task).predict(TEXTS)
    shutil.rmtree(exported_task)  # as earlier versions exported
    for folder in (model, model / "10"):
        refused(
            "g2p.* contains only a SavedModel, exported without its task: ", task_folder, folder
        )


def test_what_cannot_be_opened(tmp_path):
    def opened(path):
        with pytest.raises(UserError) as caught:
            open_task(path)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "nothing does not exist" in opened(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert "is neither a run nor a task folder" in opened(tmp_path / "empty")
    (tmp_path / "file").write_text("text")
    assert "is neither a run nor a task folder" in opened(tmp_path / "file")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.yaml").write_text("preset: g2p_small\n")
    assert "has no trained task yet" in opened(tmp_path / "run")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").write_text("{}")
    assert f"`keras-attn convert {tmp_path / 'checkpoint'} OUT`" in opened(tmp_path / "checkpoint")
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "model" / "1" / "saved_model.pb").write_bytes(b"no such thing")
    assert "is a damaged SavedModel" in opened(tmp_path / "model")
    (tmp_path / "model" / "2").mkdir()
    assert "or its highest version, must contain 'saved_model.pb'" in opened(tmp_path / "model")
    tf.saved_model.save(tf.Module(), str(tmp_path / "foreign"))
    message = opened(tmp_path / "foreign")
    assert "must be an exported task" in message
    assert "missing_signatures=['serving_default']" in message

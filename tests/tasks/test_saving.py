"""Task folders: the same task comes back, nothing foreign is touched, damage is told."""

import json

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from keras_attn.tasks import Seq2SeqTask, Task
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.tasks.made import TEXTS, make_task, reloaded

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks") / "task"
    task = make_task(beams=2, length_penalty=0.3, min_length=2)
    task.save(folder)
    return task, folder


def test_a_loaded_task_is_the_same(saved):
    task, folder = saved
    assert {path.name for path in folder.iterdir()} == {"task.json", "model.weights.h5", "assets"}
    assert {path.name for path in folder.parent.iterdir()} == {"task"}
    for loaded in (Seq2SeqTask.load(folder), Task.load(str(folder))):
        assert type(loaded) is Seq2SeqTask
        assert loaded.decoding == task.decoding
        assert loaded.target_tokenizer.vocabulary == task.target_tokenizer.vocabulary
    assert loaded.predict_n_best(TEXTS, 2) == task.predict_n_best(TEXTS, 2)
    assert loaded.score(["abc"], ["AA"]) == task.score(["abc"], ["AA"])


def test_the_description_is_plain(saved):
    content = json.loads((saved[1] / "task.json").read_text())
    assert content["format_version"] == 1
    assert content["task"] == "seq2seq"
    assert content["decoding"]["beams"] == 2
    assert content["backbone"]["config"]["hidden_dim"] == 8


def test_the_precision_is_chosen_when_loading(tmp_path):
    attention = MultiHeadAttention(2, 3, dtype="mixed_bfloat16")
    task = make_task(
        model={"dtype": "mixed_bfloat16", "encoder_attention": attention, "norm_first": True}
    )
    task.save(tmp_path / "task")
    for options, dtype in (({}, "float32"), ({"dtype": "mixed_bfloat16"}, "bfloat16")):
        loaded = Seq2SeqTask.load(tmp_path / "task", **options)
        layers = [layer for layer in loaded.backbone._flatten_layers() if layer.weights]
        assert {layer.compute_dtype for layer in layers} == {dtype}
        for ours, theirs in zip(loaded.backbone.weights, task.backbone.weights, strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=ours.path)
        assert {weight.dtype for weight in loaded.backbone.trainable_weights} == {"float32"}


def test_what_was_trained_in_low_precision_predicts_in_float32(tmp_path):
    make_task(model={"dtype": "mixed_bfloat16"}).save(tmp_path / "task")
    loaded = Seq2SeqTask.load(tmp_path / "task")
    full, mixed = (make_task(model={"dtype": dtype}) for dtype in ("float32", "mixed_bfloat16"))
    targets = full.predict(TEXTS)
    assert loaded.score(TEXTS, targets) == full.score(TEXTS, targets)
    assert loaded.score(TEXTS, targets) != mixed.score(TEXTS, targets)


def test_other_attention_is_saved(tmp_path):
    task = make_task(model={"encoder_attention": MultiHeadAttention(2, 3, num_key_value_heads=1)})
    loaded = reloaded(task, tmp_path / "task")
    assert loaded.backbone.encoder_blocks[0].attention.num_key_value_heads == 1
    assert loaded.predict(TEXTS) == task.predict(TEXTS)


def test_a_compiled_model_is_saved_without_what_it_was_compiled_with(tmp_path):
    task = make_task()
    task.backbone.compile(keras.optimizers.Adam(), loss=lambda y_true, y_pred: 0.0)
    task.save(tmp_path / "task")
    assert Seq2SeqTask.load(tmp_path / "task").predict(TEXTS) == task.predict(TEXTS)


@pytest.mark.slow
def test_saving_again_replaces(tmp_path):
    first, second = make_task(), make_task(seed=1)
    first.save(tmp_path / "task")
    second.save(tmp_path / "task")
    assert {path.name for path in tmp_path.iterdir()} == {"task"}
    loaded = Seq2SeqTask.load(tmp_path / "task")
    assert loaded.predict_n_best(TEXTS, 3) == second.predict_n_best(TEXTS, 3)
    assert loaded.predict_n_best(TEXTS, 3) != first.predict_n_best(TEXTS, 3)


def test_folders_that_are_made_or_empty_or_here(tmp_path, monkeypatch):
    task = make_task()
    task.save(tmp_path / "a" / "b")
    (tmp_path / "empty").mkdir()
    task.save(tmp_path / "empty")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    task.save(".")
    for name in ("a/b", "empty", "here"):
        assert (tmp_path / name / "task.json").is_file()


@pytest.mark.parametrize("beside_a_task", [False, True])
def test_a_foreign_folder_is_left_alone(tmp_path, beside_a_task):
    folder = tmp_path / "mine"
    if beside_a_task:
        make_task().save(folder)
    folder.mkdir(exist_ok=True)
    (folder / "thesis.txt").write_text("years of work")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(UserError, match="only a task. Received: .*mine, which contains thesis"):
        make_task(seed=1).save(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}


def test_a_file_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match="Received: .*file"):
        make_task().save(tmp_path / "file")
    with pytest.raises(UserError, match="folder of a file must exist. Received: .*file/below"):
        make_task().save(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "text"


def test_a_failure_while_writing_leaves_the_old_task(tmp_path, monkeypatch):
    task = make_task()
    task.save(tmp_path / "task")

    def fail(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(task.backbone, "save_weights", fail)
    refused("cannot be saved in .* No space left on device", task.save, tmp_path / "task")
    assert {path.name for path in tmp_path.iterdir()} == {"task"}
    assert Seq2SeqTask.load(tmp_path / "task").predict(TEXTS) == make_task().predict(TEXTS)


def test_other_things_than_a_task(tmp_path):
    with pytest.raises(
        UserError, match="The task folder must exist. Received: folder='.*nothing'."
    ):
        Seq2SeqTask.load(tmp_path / "nothing")

    class OtherTask(Task):
        kind = "other"

        def _settings(self):
            return {}

        @classmethod
        def _from_parts(cls, backbone, tokenizers, settings):
            return cls(backbone, tokenizers)

    try:
        make_task().save(tmp_path / "task")
        with pytest.raises(UserError, match="must contain a OtherTask. .* found='Seq2SeqTask'."):
            OtherTask.load(tmp_path / "task")
    finally:
        del Task.classes["other"]


def test_weights_are_those_saved_to_the_bit(saved):
    task, folder = saved
    loaded = Seq2SeqTask.load(folder)
    for ours, theirs in zip(task.backbone.weights, loaded.backbone.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=ours.path)

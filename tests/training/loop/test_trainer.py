import itertools
import json
import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import plan_epoch
from keras_attn.training import Trainer, TrainingInterrupted, ValidationSet, average_checkpoints
from keras_attn.training.state import TrainingState
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.training.stand_in import (
    StandInTask,
    Weights,
    examples,
    metrics_rows,
    settings,
    train,
    validation_set,
)

pytestmark = pytest.mark.tensorflow


def final_weights(trainer):
    return trainer.task.backbone.get_weights()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A plain run that others are compared with: folder, trainer, result."""
    folder = tmp_path_factory.mktemp("plain") / "run"
    trainer, result = train(folder, validation_set(per=5.0), log_every=3)
    return folder, trainer, result


def test_a_warm_up_longer_than_the_run_is_shortened(tmp_path, capsys):
    train(tmp_path / "run", None, schedule="cosine", warmup_steps=400)
    said = "The warm-up of 400 steps does not fit a run of 16: it is shortened to 1."
    assert said in capsys.readouterr().out


def test_other_data_than_examples_is_refused_before_anything_is_written(tmp_path):
    dataset = tf.data.Dataset.from_tensors(({"token_ids": [[1, 2]]}, [[2, 3]]))
    trainer = Trainer(StandInTask(), settings(), tmp_path / "run")
    refused("`train_examples` must be examples .*_TensorDataset", trainer.fit, dataset)
    with pytest.raises(UserError, match="`validation` must be a `ValidationSet`, .*_TensorDataset"):
        trainer.fit(examples(), dataset)
    refused("`examples` must be examples from .* examples='list'", ValidationSet, [dataset])
    assert not (tmp_path / "run").exists()


def test_run_folder(run):
    folder, trainer, result = run
    names = {path.name for path in folder.iterdir()} - {".lock"}
    files = {"metrics.csv", "summary.json", "timings.csv"}
    assert names == {"checkpoints", "task", "tensorboard"} | files
    checkpoints = {path.name for path in (folder / "checkpoints").iterdir()}
    assert checkpoints == {"best", "step-00000008", "step-00000016"}
    assert (result.step, result.kept, result.best_step) == (16, "best", 16)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["value"] == result.value == float(metrics_rows(folder)[-1]["val_loss"])
    saved = StandInTask()
    saved.backbone.load_weights(folder / "task" / "model.weights.h5")
    np.testing.assert_equal(saved.backbone.get_weights(), final_weights(trainer))


def test_metrics(run):
    folder, trainer, _ = run
    rows = metrics_rows(folder)
    assert [row["step"] for row in rows] == ["3", "6", "8", "9", "12", "15", "16"]
    assert [row["epoch"] for row in rows] == ["1"] * 3 + ["2"] * 4
    assert [row["val_per"] for row in rows] == ["", "", "5.0", "", "", "", "5.0"]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"]) - 0.05
    # Warm-up to 0.05 over three updates; the rate is that of the row's own update.
    assert float(rows[0]["learning_rate"]) == pytest.approx(0.05)
    # The validation loss of the final weights, in one batch of everything.
    held_out = examples(13, seed=1)
    inputs, labels = held_out.assemble(np.arange(13))
    probabilities = tf.nn.softmax(trainer.task.backbone(inputs)).numpy()
    real = labels > 0
    nll = -np.log(np.take_along_axis(probabilities, labels[..., None], -1)[..., 0][real]).mean()
    assert float(rows[-1]["val_nll"]) == pytest.approx(nll, rel=1e-5)
    assert float(rows[-1]["val_perplexity"]) == pytest.approx(np.exp(nll), rel=1e-5)
    right = (probabilities.argmax(-1) == labels)[real].mean()
    assert float(rows[-1]["val_accuracy"]) == pytest.approx(right)


def test_training_loss_is_the_mean_over_tokens(tmp_path):
    # A rate too small to change anything: the loss of the epoch is that of the first weights.
    task = StandInTask()
    everything = examples()
    inputs, labels = everything.assemble(np.arange(len(everything)))
    log_probabilities = tf.nn.log_softmax(task.backbone(inputs)).numpy()
    chosen = np.take_along_axis(log_probabilities, labels[..., None], -1)[..., 0]
    per_token = -(0.9 * chosen + 0.1 * log_probabilities.mean(-1))[labels > 0].mean()
    train(tmp_path / "run", task=task, epochs=1, learning_rate=1e-12)
    (row,) = metrics_rows(tmp_path / "run")
    assert float(row["loss"]) == pytest.approx(per_token, rel=1e-5)
    norms = [
        gradient_norm(task.backbone, *everything.assemble(rows))
        for rows in plan_epoch(everything, 64, seed=1)
    ]
    assert float(row["gradient_norm"]) == pytest.approx(np.mean(norms), rel=1e-5)


def gradient_norm(model, inputs, labels):
    with tf.GradientTape() as tape:
        logits = model(inputs)
        target = 0.9 * tf.one_hot(labels, logits.shape[-1]) + 0.1 / logits.shape[-1]
        losses = tf.nn.softmax_cross_entropy_with_logits(target, logits)
        loss = tf.reduce_mean(losses[labels > 0])
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    return tf.linalg.global_norm([tf.convert_to_tensor(g) for g in gradients]).numpy()


def shown_scalars(folder):
    """The steps that TensorBoard has of each value."""
    scalars = {}
    for events in (folder / "tensorboard").iterdir():
        for record in tf.data.TFRecordDataset(str(events)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                scalars.setdefault(value.tag, []).append(event.step)
    return scalars


def test_timings_and_tensorboard(run):
    folder, _, _ = run
    lines = (folder / "timings.csv").read_text().splitlines()
    assert lines[0].split(",")[0] == "step"
    assert [line.split(",")[0] for line in lines[1:]] == ["3", "6", "8", "9", "12", "15", "16"]
    assert int(lines[-1].split(",")[3]) == 2 * len(examples().target.ids)
    scalars = shown_scalars(folder)
    assert scalars["loss"] == [3, 6, 8, 9, 12, 15, 16]
    assert scalars["val_per"] == [8, 16]
    for name in ("target_tokens_per_second", "padding_share", "memory_mb", "gradient_norm"):
        assert scalars[name] == scalars["loss"], name


def test_timings_of_a_resumed_run_are_those_of_one(tmp_path):
    steps = [3, 6, 8, 9, 12, 15, 16]
    with pytest.raises(TrainingInterrupted):
        train(tmp_path, callbacks=[Signal(signal.SIGINT, 11)], log_every=3)
    # As after a kill: a row later than the checkpoint, and an old file's row that is there twice.
    with (tmp_path / "timings.csv").open("a") as file:
        file.write("12,2,9.0,999,9.0,0.5,999\n")
    rows = (tmp_path / "timings.csv").read_text().splitlines()
    (tmp_path / "timings.csv").write_text("\n".join([*rows[:2], *rows[1:], ""]))
    train(tmp_path, resume=True, log_every=3)
    lines = (tmp_path / "timings.csv").read_text().splitlines()
    assert lines[:5] == rows[:5]
    assert [int(line.split(",")[0]) for line in lines[1:]] == steps
    assert "999" not in lines[5]
    scalars = shown_scalars(tmp_path)
    for name in ("target_tokens_per_second", "padding_share", "memory_mb", "loss"):
        assert sorted(scalars[name]) == steps, name


def test_samples_are_kept_shown_and_resumed(tmp_path):
    calls = iter(range(9))
    validation = ValidationSet(
        examples(13, seed=1), samples=lambda: [("a|b", "c", f"<{next(calls)}>\n")]
    )
    with pytest.raises(TrainingInterrupted):
        train(tmp_path, validation, callbacks=[Signal(signal.SIGINT, 11)])
    train(tmp_path, validation, resume=True)
    assert json.loads((tmp_path / "samples.json").read_text()) == [
        {"step": 8, "texts": [["a|b", "c", "<0>\n"]]},
        {"step": 16, "texts": [["a|b", "c", "<1>\n"]]},
    ]
    texts = {}
    for events in (tmp_path / "tensorboard").iterdir():
        for record in tf.data.TFRecordDataset(str(events)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.tag == "samples":
                    texts[event.step] = value.tensor.string_val[0].decode()
    assert list(texts) == [8, 16]
    assert texts[16].splitlines()[2] == "| a\\|b | c | <1> |"


def test_logging_and_checkpoints_change_nothing(tmp_path, run):
    trainer, _ = train(tmp_path / "run", validation_set(per=5.0), checkpoint_every=3)
    np.testing.assert_equal(final_weights(trainer), final_weights(run[1]))


def test_model_learns(tmp_path):
    # Guessing evenly has perplexity 17; the end token and its frequency alone give about 14.
    _, result = train(tmp_path / "run", ValidationSet(examples()), epochs=8, metric="perplexity")
    assert result.metric == "perplexity"
    assert result.value < 9.5


class Scripted:
    """A metric that takes given values, one after the other."""

    def __init__(self, *values):
        self.values = list(values)

    def __call__(self):
        return {"per": self.values.pop(0)}


def test_best_model_is_kept(tmp_path):
    weights = Weights()
    trainer, result = train(
        tmp_path / "run", Scripted(9, 4, 6, 5), callbacks=[weights], epochs=4, metric="per"
    )
    assert (result.kept, result.best_step, result.value) == ("best", 16, 4.0)
    np.testing.assert_equal(final_weights(trainer), weights.after[1])


def test_largest_is_best_where_that_is_better(tmp_path):
    _, result = train(tmp_path / "run", Scripted(9, 4), metric="per", metric_goal="max")
    assert (result.best_step, result.value) == (8, 9.0)
    with pytest.raises(UserError, match="metric='speed'"):
        Trainer(StandInTask(), settings(metric="speed"), tmp_path / "other")


def test_early_stopping(tmp_path):
    _, result = train(
        tmp_path / "run", Scripted(9, 4, 6, 4, float("nan")), epochs=9, metric="per", patience=3
    )
    assert (result.step, result.best_step) == (40, 16)


@pytest.mark.parametrize(
    ("ends", "last_step"),
    [
        ({"epochs": 1, "min_steps": 19}, 19),  # within the third epoch of 8 updates
        ({"epochs": 1, "min_steps": 8}, 8),
        ({"epochs": 1, "min_steps": 9, "steps": 5}, 5),
        ({"epochs": 5, "min_steps": 30, "patience": 1}, 30),
        ({"epochs": 5, "min_steps": 30}, 40),
    ],
)
def test_neither_epochs_nor_patience_end_a_run_before_its_least_updates(tmp_path, ends, last_step):
    values = itertools.repeat({"per": 1.0})
    _, result = train(tmp_path / "run", lambda: next(values), metric="per", **ends)
    assert result.step == last_step
    assert settings(**ends).total_steps(8) == last_step or "patience" in ends
    rows = metrics_rows(tmp_path / "run")
    assert rows[-1]["step"] == str(last_step)
    assert rows[-1]["val_per"]


def test_of_equal_metrics_that_of_the_lower_loss_is_kept(tmp_path):
    rows = [(9, 5.0), (4, 3.0), (4, 2.0), (4, 2.5), (6, 0.1), (4, float("nan"))]
    values = iter({"per": per, "loss": loss} for per, loss in rows)
    _, result = train(tmp_path / "run", lambda: next(values), epochs=6, metric="per", patience=3)
    assert (result.best_step, result.value, result.step) == (24, 4.0, 48)


def test_validation_within_epochs(tmp_path):
    _, result = train(
        tmp_path / "run", Scripted(9, 7, 8, 6), metric="per", validate_every=5, keep_checkpoints=4
    )
    rows = metrics_rows(tmp_path / "run")
    found = {row["step"]: row["val_per"] for row in rows if row["val_per"]}
    assert found == {"5": "9.0", "10": "7.0", "15": "8.0", "16": "6.0"}
    assert result.best_step == 16


def test_unknown_metric_is_told_and_nothing_lost(tmp_path):
    with pytest.raises(UserError, match=r"one of .*loss.*, per\. Received: metric='bleu'"):
        train(tmp_path / "run", validation_set(per=1.0), metric="bleu")
    _, result = train(tmp_path / "run", validation_set(per=1.0), metric="per", resume=True)
    assert (result.step, result.metric) == (16, "per")


def test_average_is_kept_when_it_is_better(tmp_path):
    trainer, result = train(
        tmp_path / "run", Scripted(9, 8, 7, 5), epochs=3, metric="per", average_last=2
    )
    assert (result.kept, result.value, result.average_value) == ("average", 5.0, 5.0)
    folders = [tmp_path / "run" / "checkpoints" / f"step-{step:08d}" for step in (16, 24)]
    averaged = average_checkpoints(folders)
    np.testing.assert_equal(final_weights(trainer), [*averaged.values()])


@pytest.mark.parametrize(
    ("parts", "whole", "kept", "value", "average", "best_epoch"),
    [
        ((9, 8, 7, 7.5), None, "best", 7.0, 7.5, 2),
        # Measured on all texts: the best weights, then the average.
        ((9, 5, 7), (8, 6), "average", 8.0, 6.0, 1),
        ((9, 5, 7), (6, 8), "best", 6.0, 8.0, 1),
    ],
)
def test_choice_at_the_end(tmp_path, parts, whole, kept, value, average, best_epoch):
    weights = Weights()
    final = Scripted(*whole) if whole else None
    trainer, result = train(
        tmp_path,
        ValidationSet(decode_metrics=Scripted(*parts), final_metrics=final),
        callbacks=[weights],
        epochs=3,
        metric="per",
        average_last=2,
    )
    assert (result.kept, result.best_value, result.average_value) == (kept, value, average)
    assert result.best_step == 8 * (best_epoch + 1)
    if kept == "best":
        np.testing.assert_equal(final_weights(trainer), weights.after[best_epoch])


def test_nothing_is_measured_again_where_there_is_no_choice(tmp_path):
    validation = ValidationSet(decode_metrics=Scripted(9, 5), final_metrics=Scripted())
    _, result = train(tmp_path / "run", validation, metric="per")
    assert (result.kept, result.value) == ("best", 5.0)


def moving_averages(weights, decay):
    """After each update, by the definition."""
    averages = [weights[0]]
    for updates, current in enumerate(weights[1:], start=1):
        share = min(decay, updates / (9 + updates))
        pairs = zip(averages[-1], current, strict=True)
        averages.append([share * average + (1 - share) * weight for average, weight in pairs])
    return averages


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_moving_average_of_the_weights_is_judged_and_kept(tmp_path, optimizer):
    task, seen, judged = StandInTask(), [], []

    def copied():
        return [np.array(weight) for weight in task.backbone.get_weights()]

    def judge():
        judged.append(copied())
        return {"loss": 5 - len(judged)}

    watch = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(copied())
    )
    train(tmp_path, judge, task=task, callbacks=[watch], ema_decay=0.6, optimizer=optimizer)
    averages = moving_averages(seen, 0.6)
    assert len(averages) == 16
    for found, expected in ((judged[0], averages[7]), (judged[1], averages[15])):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    np.testing.assert_equal(copied(), judged[1])
    # The averages change nothing of the training.
    plain = StandInTask()
    train(tmp_path / "plain", task=plain, optimizer=optimizer)
    np.testing.assert_equal(seen[-1], plain.backbone.get_weights())


def test_without_validation_the_last_average_is_kept(tmp_path):
    task, seen = StandInTask(), Weights()
    train(tmp_path, task=task, callbacks=[seen], ema_decay=0.9)
    for kept, last in zip(task.backbone.get_weights(), seen.after[-1], strict=True):
        assert np.abs(kept - last).max() > 1e-4


def test_no_validation_keeps_the_last_weights(tmp_path):
    weights = Weights()
    trainer, result = train(tmp_path / "run", callbacks=[weights])
    assert (result.kept, result.value, result.metric) == ("last", None, None)
    np.testing.assert_equal(final_weights(trainer), weights.after[-1])


def test_number_of_steps_ends_within_an_epoch(tmp_path):
    _, result = train(tmp_path / "run", validation_set(), epochs=None, steps=11)
    assert result.step == 11
    assert [row["step"] for row in metrics_rows(tmp_path / "run")] == ["8", "11"]
    assert metrics_rows(tmp_path / "run")[-1]["val_loss"] != ""


def test_the_last_row_has_its_validation_where_rows_are_due_too(tmp_path):
    train(tmp_path / "run", validation_set(), epochs=None, steps=6, log_every=2)
    rows = metrics_rows(tmp_path / "run")
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    assert [row["val_loss"] != "" for row in rows] == [False, False, True]


def test_time_limit_ends_in_good_order(tmp_path):
    _, result = train(tmp_path / "run", validation_set(), max_minutes=1e-12)
    assert result.step == 1
    assert (tmp_path / "run" / "task" / "model.weights.h5").exists()


class Recording(keras.callbacks.LambdaCallback):
    """Writes down what is called."""

    def __init__(self, stop_after=None):
        self.calls, self.logs, self.stop_after = [], {}, stop_after
        super().__init__(
            on_train_begin=lambda logs: self.calls.append("train begin"),
            on_train_end=lambda logs: self.calls.append("train end"),
            on_test_end=lambda logs: self.calls.append("test end"),
            on_epoch_begin=lambda epoch, logs: self.calls.append(f"epoch {epoch}"),
            on_train_batch_begin=lambda batch, logs: self.calls.append(f"begin batch {batch}"),
            on_train_batch_end=self.end_batch,
        )

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(f"end {epoch}")
        self.logs[epoch] = logs

    def end_batch(self, batch, logs):
        self.calls.append(f"batch {batch}")
        assert set(logs) == {"loss", "nll", "accuracy"}
        if len([call for call in self.calls if call.startswith("batch")]) == self.stop_after:
            self.model.stop_training = True


def test_callbacks(tmp_path):
    recording, history = Recording(), keras.callbacks.History()
    train(tmp_path / "run", validation_set(per=2.0), callbacks=[recording, history])
    batches = [call for number in range(8) for call in (f"begin batch {number}", f"batch {number}")]
    assert recording.calls == [
        "train begin",
        *["epoch 0", *batches, "test end", "end 0"],
        *["epoch 1", *batches, "test end", "end 1"],
        "train end",
    ]
    rows = metrics_rows(tmp_path / "run")
    assert recording.logs[1]["loss"] == pytest.approx(float(rows[1]["loss"]))
    assert history.history["val_per"] == [2.0, 2.0]
    assert history.history["val_loss"] == [float(row["val_loss"]) for row in rows]


def test_callback_stops_training(tmp_path):
    recording = Recording(stop_after=11)
    _, result = train(tmp_path / "run", validation_set(), callbacks=[recording])
    assert result.step == 11
    stopper = keras.callbacks.EarlyStopping("val_per", patience=1, mode="min")
    _, result = train(
        tmp_path / "other", validation_set(per=3.0), callbacks=[stopper], epochs=9, metric="per"
    )
    assert result.step == 16


class Signal(keras.callbacks.Callback):
    """Sends a signal after a number of batches, or during a validation."""

    def __init__(self, number, batches=None):
        super().__init__()
        self.number = number
        self.batches = batches

    def on_train_batch_end(self, batch, logs=None):
        if self.batches is not None:
            self.batches -= 1
            if self.batches == 0:
                os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(
    ("number", "status", "batches"), [(signal.SIGINT, 130, 5), (signal.SIGTERM, 143, 8)]
)
def test_signal_writes_a_checkpoint_and_the_run_goes_on(
    tmp_path, run, capsys, number, status, batches
):
    before = signal.getsignal(number)
    with pytest.raises(TrainingInterrupted) as caught:
        train(
            tmp_path / "run",
            validation_set(per=5.0),
            callbacks=[Signal(number, batches)],
            log_every=3,
        )
    assert caught.value.code == status
    assert signal.getsignal(number) is before
    assert f"Interrupted at step {batches}" in capsys.readouterr().out
    checkpoints = [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert checkpoints == [f"step-0000000{batches}"]
    trainer, _ = train(tmp_path / "run", validation_set(per=5.0), log_every=3, resume=True)
    np.testing.assert_equal(final_weights(trainer), final_weights(run[1]))
    expected = (run[0] / "metrics.csv").read_text()
    assert (tmp_path / "run" / "metrics.csv").read_text() == expected


@pytest.mark.parametrize("validate_every", [0, 5])
def test_signal_during_validation(tmp_path, validate_every):
    def interrupting():
        os.kill(os.getpid(), signal.SIGINT)
        return {"per": 1.0}

    numbers = {"metric": "per", "validate_every": validate_every}
    values = [3.0, 2.0, 1.0, 0.5]
    with pytest.raises(TrainingInterrupted):
        train(tmp_path / "run", interrupting, **numbers)
    assert not (tmp_path / "run" / "checkpoints" / "best").exists()
    train(tmp_path / "run", Scripted(*values), resume=True, **numbers)
    train(tmp_path / "whole", Scripted(*values), **numbers)
    texts = [(tmp_path / name / "metrics.csv").read_text() for name in ("run", "whole")]
    assert texts[0] == texts[1]


def test_damaged_checkpoint_falls_back(tmp_path, run, capsys):
    train(tmp_path / "run", validation_set(per=5.0), log_every=3)
    damaged = tmp_path / "run" / "checkpoints" / "step-00000016" / "state.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-5] ^= 16
    damaged.write_bytes(content)
    capsys.readouterr()
    trainer, result = train(tmp_path / "run", validation_set(per=5.0), log_every=3, resume=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "is damaged" in line] == [lines[0]]
    assert "step-00000008 (epoch 2, step 8)" in lines[1]
    assert result.step == 16
    np.testing.assert_equal(final_weights(trainer), final_weights(run[1]))
    expected = (run[0] / "metrics.csv").read_text()
    assert (tmp_path / "run" / "metrics.csv").read_text() == expected


def test_resuming_a_finished_run_only_confirms_it(tmp_path, run):
    folder, trainer, result = run
    before = (folder / "metrics.csv").read_text()
    again, confirmed = train(folder, validation_set(per=5.0), log_every=3, resume=True)
    assert confirmed == result
    assert (folder / "metrics.csv").read_text() == before
    np.testing.assert_equal(final_weights(again), final_weights(trainer))


def test_resuming_nothing_starts_from_the_beginning(tmp_path, capsys):
    _, result = train(tmp_path / "run", resume=True)
    assert result.step == 16
    assert "starting from the beginning" in capsys.readouterr().out


def test_resuming_in_other_batches_is_refused(tmp_path):
    with pytest.raises(TrainingInterrupted):
        train(tmp_path / "run", callbacks=[Signal(signal.SIGINT, 3)])
    with pytest.raises(
        UserError, match=r"keeps its `batch_tokens`, 64: .*Received: batch_tokens=97"
    ):
        train(tmp_path / "run", resume=True, batch_tokens=97)


def test_changed_settings_are_told(tmp_path, capsys):
    train(tmp_path / "run", epochs=1)
    _, result = train(tmp_path / "run", resume=True, epochs=2, learning_rate=0.01)
    assert result.step == 16
    assert "learning_rate 0.05 -> 0.01" in capsys.readouterr().out


def test_used_folder_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    refused(rf"'{tmp_path}', which holds notes\.txt", train, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_prepared_folder_is_accepted(tmp_path):
    (tmp_path / "run.yaml").write_text("")
    (tmp_path / "tokenizers").mkdir()
    train(tmp_path, epochs=1)


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    refused(rf"writable: .*'{tmp_path}/file/run'", train, tmp_path / "file" / "run")


def test_two_runs_do_not_share_a_folder(tmp_path):
    seen = []

    def meanwhile():
        told = rf"Another process .*, process {os.getpid()} on .*'{tmp_path}/run'"
        with pytest.raises(UserError, match=told) as caught:
            train(tmp_path / "run", resume=True)
        seen.append(caught.value)
        return {"per": 1.0}

    train(tmp_path / "run", meanwhile, epochs=1, metric="per")
    assert len(seen) == 1


def test_loss_that_is_no_number_is_told(tmp_path):
    task = StandInTask()
    task.backbone.set_weights([np.full_like(w, np.inf) for w in task.backbone.get_weights()])
    refused(r"no longer a number .*loss=(nan|inf)", train, tmp_path / "run", task=task)


def test_lack_of_memory_is_told(tmp_path):
    class Full(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            message = "OOM when allocating tensor with shape[9,9]\nmore"
            raise tf.errors.ResourceExhaustedError(None, None, message)

    expected = (
        r"does not fit into memory.* batch_tokens=32 with accumulate_steps=4; .* "
        r"Received: batch_tokens=64, accumulate_steps=2, OOM when .* shape\[9,9\]\.$"
    )
    with pytest.raises(UserError, match=expected):
        train(tmp_path / "run", callbacks=[Full()], accumulate_steps=2)


def test_task_may_bring_its_own_loss(tmp_path):
    task = StandInTask()

    def squares(labels, logits, label_smoothing):
        real = tf.cast(labels > 0, logits.dtype)
        count = tf.reduce_sum(real)
        total = tf.reduce_sum(logits**2 * real[..., None]) * (1 + label_smoothing)
        return total, 0.0 * count, count, 0.0 * count

    task.loss = squares
    inputs, labels = examples().assemble(np.arange(len(examples())))
    logits = task.backbone(inputs).numpy()[labels > 0]
    train(tmp_path / "run", task=task, epochs=1, learning_rate=1e-12)
    (row,) = metrics_rows(tmp_path / "run")
    assert float(row["loss"]) == pytest.approx(1.1 * (logits**2).sum() / len(logits), rel=1e-5)
    assert float(row["nll"]) == 0


def test_model_built_for_another_strategy_is_refused(tmp_path):
    with pytest.raises(UserError, match="strategy='mirrored', a model built for 'one'"):
        Trainer(StandInTask(), settings(strategy="mirrored"), tmp_path)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_learns_as_float32(tmp_path, precision, run):
    keras.config.set_dtype_policy(precision)
    trainer, result = train(tmp_path / "run", validation_set(per=5.0), precision=precision)
    assert result.value == pytest.approx(run[2].value, rel=0.02)
    assert {w.dtype for w in trainer.task.backbone.trainable_variables} == {"float32"}


def test_compiled_by_xla(tmp_path):
    task = StandInTask(dropout=0.2)
    _, result = train(tmp_path / "run", validation_set(), task=task, jit="on", steps=4)
    assert result.step == 4


def test_progress_in_a_log_is_plain(tmp_path, capsys):
    train(tmp_path / "run", validation_set(per=5.0))
    output = capsys.readouterr().out
    assert "\x1b" not in output
    lines = output.splitlines()
    assert lines[0].startswith("epoch 1 step 8 loss ")
    assert "val_per 5.0000" in lines[0]
    assert lines[-1].startswith("Done after 16 steps: kept best, of step 16, loss ")


def test_stand_in_batches_differ_in_size():
    """The comparisons above would show little if all batches had equally many tokens."""
    from keras_attn.data import plan_epoch

    rows = examples()
    plan = plan_epoch(rows, 64, 1, 0)
    assert len(plan) == 8
    assert len({int(rows.lengths[batch, 1].sum()) for batch in plan}) > 3


def test_weights_before_the_first_update_are_a_choice_that_others_must_beat_clearly():
    """Of a first value of 2, minimized, with a gain of 5%: 1.91 is not enough, 1.89 is."""
    for goal, sign in (("min", 1), ("max", -1)):
        state, chosen = TrainingState(), []
        for step, value in enumerate((2.0, 1.91, 1.89, 1.88, 1.885)):
            state.step = step
            chosen.append(state.judge(sign * value, goal, start_gain=0.05))
        assert chosen == [True, False, True, True, False]
        assert (state.best_step, state.best_value, state.waiting) == (3, sign * 1.88, 1)

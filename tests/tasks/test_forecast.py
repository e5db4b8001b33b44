"""Forecasts of a task: of arrays and tables, saved, exported, refused."""

import json
import math
from functools import partial

import numpy as np
import pandas
import pytest
import tensorflow as tf

from keras_attn.evaluation.forecasts import pinball
from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.models import Forecaster
from keras_attn.tasks import ForecastTask, open_task
from tests.export.toy import verified
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import reloaded

pytestmark = pytest.mark.tensorflow

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
CONTEXT, HORIZON = 7, 3
COLUMNS = {"time": ["day"], "target": ["sold", "seen"], "unknown": ["price"], "known": ["off"]}
DRAW = np.random.default_rng(8)


def make_task(columns=COLUMNS, season=2, **options):
    sizes = {"targets": 2, "unknown": 1, "known_scales": [2.0], "quantiles": (0.1, 0.5, 0.9)}
    model = Forecaster(CONTEXT, HORIZON, patch_length=2, **SIZES | sizes | options)
    return ForecastTask(spread_weights(model), columns, season)


@pytest.fixture(scope="module")
def task():
    return make_task(scales=(1.0, 2.0), centers=(5.0, 4.0))


def inputs(rows, steps=CONTEXT):
    past = DRAW.normal(size=(rows, steps, 4)) + 5
    return past, DRAW.normal(size=(rows, HORIZON, 1))


def of_model(task, past, future):
    inputs = {"past": past} | ({} if future is None else {"future": future})
    return np.asarray(task.backbone(inputs))


def test_the_last_steps_of_histories_are_read(task):
    past, future = inputs(4, CONTEXT + 5)
    expected = of_model(task, past[:, -CONTEXT:], future)
    found = task.predict(past, future)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(task.median(past, future), found[..., 1])
    # Shorter ones, and some of other lengths, have missing steps before them.
    short = [past[0, -2:], past[1], past[2, -CONTEXT:], past[3, -3:]]
    padded = np.full((4, CONTEXT, 4), np.nan)
    for row, history in zip(padded, short, strict=True):
        row[-min(len(history), CONTEXT) :] = history[-CONTEXT:]
    np.testing.assert_allclose(
        task.predict(short, future), of_model(task, padded, future), rtol=1e-4, atol=1e-4
    )


def test_small_changes_of_large_numbers_are_seen():
    past = DRAW.normal(size=(2, CONTEXT))
    for scales, centers in (((), ()), ((0.7,), ()), ((0.7,), (2.0,))):
        options = {"targets": 1, "unknown": 0, "known_scales": (), "scales": scales}
        plain = make_task({"target": ["y"]}, centers=centers, **options)
        expected = of_model(plain, past[..., None], None)
        np.testing.assert_allclose(plain.predict(past), expected, rtol=1e-4, atol=1e-4)
        moved = make_task({"target": ["y"]}, centers=[1e9 + c for c in centers], **options)
        found = moved.predict(past + 1e9) - 1e9
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_mean_pinball_loss_of_known_values(task):
    labels = DRAW.normal(size=(2, HORIZON, 2)).astype("float32")
    labels[0, 1, 0] = math.nan
    outputs = np.sort(DRAW.normal(size=(2, HORIZON, 2, 3))).astype("float32")
    loss, again, count, inside = task.loss(tf.constant(labels), tf.constant(outputs))
    losses = pinball(labels, outputs, task.quantiles).mean(axis=-1)
    assert float(loss) == float(again) == pytest.approx(np.nansum(losses), rel=1e-5)
    assert float(count) == 2 * HORIZON * 2 - 1
    assert float(inside) == np.sum((outputs[..., 0] <= labels) & (labels <= outputs[..., -1]))


def table(steps, ahead):
    days = pandas.date_range("2024-02-26", periods=steps + ahead)
    values = DRAW.normal(size=(steps + ahead, 4))
    frame = pandas.DataFrame(values, columns=["sold", "seen", "price", "off"]).assign(day=days)
    frame.loc[steps:, ["sold", "seen", "price"]] = None
    return frame


def test_forecasts_of_a_table_have_the_times_after_its_last_value(task, tmp_path):
    frame = table(9, HORIZON)
    forecasts = task.forecast(frame.sample(frac=1, random_state=1))
    values = frame[["sold", "seen", "price", "off"]].to_numpy()
    expected = task.predict(values[None, :9], values[None, 9:, 3:])
    np.testing.assert_allclose(forecasts.quantiles, expected, rtol=1e-5)
    rows = forecasts.rows()
    assert [row["time"] for row in rows[::2]] == [f"2024-03-0{n}" for n in (6, 7, 8)]
    assert [row["target"] for row in rows[:3]] == ["sold", "seen", "sold"]
    assert rows[3]["q0.9"] == pytest.approx(expected[0, 1, 1, 2], rel=1e-5)
    frame.to_csv(tmp_path / "a.csv", index=False)
    written = task.forecast(str(tmp_path / "a.csv")).csv().splitlines()
    assert written[0] == "time,series,target,q0.1,q0.5,q0.9"
    *place, first, _, _ = written[1].split(",")
    assert place == ["2024-03-06", "", "sold"]
    assert float(first) == pytest.approx(expected[0, 0, 0, 0], rel=1e-5)
    message = (
        "2 of the 3 steps after the last value have no known covariates .off.*until 2024-03-08"
    )
    refused(message, task.forecast, table(9, 1))


def test_it_is_saved_exported_and_served(task, tmp_path):
    past, future = inputs(3)
    loaded = reloaded(task, tmp_path / "task")
    np.testing.assert_array_equal(loaded.predict(past, future), task.predict(past, future))
    folder = export_saved_model(task, tmp_path / "exported")
    assert verified(folder).ok
    exported = open_task(tmp_path / "exported")
    assert (exported.horizon, exported.quantiles) == (HORIZON, [0.1, 0.5, 0.9])
    ragged = [past[0, -2:], past[1], past[2]]
    np.testing.assert_allclose(
        exported.predict(ragged, future), task.predict(ragged, future), rtol=1e-4, atol=1e-5
    )
    long, ahead = inputs(2, CONTEXT + 4)
    outputs = CppSavedModel(folder).run(
        "serving_default", {"past": long.astype("float32"), "future": ahead.astype("float32")}
    )
    expected = task.predict(long, ahead)
    np.testing.assert_allclose(outputs["quantiles"], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(outputs["median"], expected[..., 1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(outputs["levels"], [[0.1, 0.5, 0.9]] * 2, rtol=1e-6)


def test_tokens_are_patches_of_time(task):
    (text, *_) = task.example_texts()
    view = task.read_tokens(tf.constant([text]))
    # Seven steps in patches of two, the last of them at the end; then three steps.
    names = ["-7..-6", "-5..-4", "-3..-2", "-1..0", "+1..+2", "+3..+4"]
    assert [name.decode() for name in view.source.numpy()[0]] == names


PAST, FUTURE = inputs(2)
REFUSED = {
    "another number of channels": ((PAST[..., :3], FUTURE), r"shape \(steps, 4\).*shape=\(7, 3\)"),
    "no steps": ((PAST[:, :0], FUTURE), "must have the shape"),
    "no histories": (([], FUTURE), "at least one history"),
    "no future": ((PAST, None), "`future` must have the 1 known covariates of the next 3 steps"),
    "a shorter future": ((PAST, FUTURE[:, :2]), r"shape \(batch, 3, 1\).*\(2, 2, 1\)"),
    "fewer futures": ((PAST, FUTURE[:1]), "equal numbers of series. Received: past=2, future=1"),
    "words": (([["a"] * 4], FUTURE), "`past` must be arrays of numbers"),
    "infinity": ((PAST + math.inf, FUTURE), "must be finite or NaN"),
    "no value": ((PAST * math.nan, FUTURE), "a value of each target .*history=0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_inputs_are_refused(name, task):
    arguments, message = REFUSED[name]
    refused(message, task.predict, *arguments)


def test_other_mistakes_are_refused(task):
    refused("name the channels of the model, 2 target, 1 unknown", make_task, {"target": ["y"]})
    refused("`season` must be a positive integer", make_task, season=0)
    plain = make_task({"target": ["y"]}, targets=1, unknown=0, known_scales=())
    refused("no known covariates for `future`", plain.predict, [[1.0, 2.0]], FUTURE)
    rows = [{"past": [[1.0] * 4] * steps, "future": [[0.0]] * 3} for steps in (2, 3)]
    examples = [json.dumps(row) for row in rows]
    export = partial(export_saved_model, task, "unused")
    refused("equally many steps. Received: steps=.2, 3", export, examples=examples)
    refused("must be JSON such as", export, examples=["[1]"])

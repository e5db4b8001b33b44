"""Runs of forecasters: split by time, measured beside the naive forecast, from files and Python."""

import csv
import json
import types

import numpy as np
import pandas
import pytest

import keras_attn
from keras_attn.cli import main
from keras_attn.evaluation.forecasts import pinball
from keras_attn.tasks import Task
from keras_attn.training import run as job
from keras_attn.training.run_settings import DataSettings, RunSettings, read_run_file
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.training.task_runs.forecast import context_of
from tests.refusals import refused
from tests.training.task_runs.made import (
    SIZES,
    answers_of_a_run_and_its_export,
    base,
    trained,
    waves,
    write_data,
)
from tests.written import written

pytestmark = pytest.mark.tensorflow

RUN = TASK_RUNS["forecast"]
SEASON = 7
COLUMNS = ("--columns", "time=day", "target=y")
SHOPS = {"time": "day", "target": "sold", "known": "off", "series": "shop"}


def shops(seed=1, steps=80):
    """Two shops of other scales that sell 5 deviations more on days off."""
    draw = np.random.default_rng(seed)
    frames = []
    for number, name in enumerate("ab"):
        off = (draw.random(steps) < 0.3).astype(int)
        sold = 10.0**number * (draw.normal(size=steps) + 5 * off + 100)
        days = pandas.date_range("2024-01-01", periods=steps).strftime("%Y-%m-%d")
        frames.append(pandas.DataFrame({"day": days, "shop": name, "sold": sold, "off": off}))
    return pandas.concat(frames)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    counts = 210, 140
    return trained(
        "forecast", tmp_path_factory.mktemp("forecast"), counts, steps=60, validate_every=20
    )


def test_defaults_follow_from_the_data(run):
    folder, _ = run
    data = read_run_file(folder / "run/run.yaml")["data"]
    assert (data["season"], data["horizon"], data["context"]) == (SEASON, SEASON, 32)


def test_it_is_better_than_the_naive_forecast(run, tmp_path, capsys):
    folder, results = run
    # By hand: the last 14 of 140 steps, and each origin with a whole horizon in them.
    values = np.array([float(line.split("\t")[1]) for line in waves(140, 2)[1:]])
    origins = range(140 - 14, 140 - SEASON + 1)
    naive = [values[at - SEASON : at] for at in origins]
    errors = np.abs(naive - np.stack([values[at : at + SEASON] for at in origins]))
    scale = np.abs(values[SEASON : 140 - 14] - values[: 140 - 14 - SEASON]).mean()
    assert results["items"] == len(origins)
    assert results["naive_mase"] == pytest.approx(errors.mean() / scale, rel=1e-5)
    assert results["mase"] < results["naive_mase"]
    answers_of_a_run_and_its_export(run, tmp_path, capsys)
    expected = Task.load(folder / "run/task").median(values[None])[0, :, 0]
    for model in (folder / "run", tmp_path / "exported"):
        capsys.readouterr()
        assert main(["predict", str(model), str(folder / "test"), *COLUMNS]) == 0
        rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert [row["time"] for row in rows] == [str(140 + step) for step in range(SEASON)]
        assert [float(row["q0.5"]) for row in rows] == pytest.approx(expected.tolist(), rel=1e-3)


def test_the_report_draws_the_last_validation_steps(run):
    folder, _ = run
    errors = json.loads((folder / "run/errors.json").read_text())
    (drawn,) = errors["forecasts"]
    part = RUN.read_texts(RunSettings.read(folder / "run/run.yaml").data, seed=1)["validation"]
    end, values = int(part.ends[0]), part.table.values[0][:, 0]
    actual = values[end - SEASON : end]
    assert drawn["targets"][0]["actual"] == pytest.approx(actual)
    assert drawn["targets"][0]["past"] == pytest.approx(values[end - 4 * SEASON : end - SEASON])
    assert drawn["times"] == [str(step) for step in range(end - 4 * SEASON, end)]
    assert errors["worst"][0][3] >= errors["worst"][1][3] > 0
    judged = RUN.judged(part, RUN.answers(Task.load(folder / "run/task"), part))
    last = next(one for one in judged if one.source == str(end - SEASON))
    medians = [float(number) for number in last[2].split()]
    assert [float(number) for number in last[1].split()] == pytest.approx(actual, rel=1e-4)
    levels = drawn["levels"]
    drawn_medians = [step[levels.index(0.5)] for step in drawn["targets"][0]["quantiles"]]
    assert medians == pytest.approx(drawn_medians, rel=1e-4)
    history = values[: int(part.begins[0])]
    scale = np.abs(history[SEASON:] - history[:-SEASON]).mean()
    assert last[3] == pytest.approx(np.abs(actual - medians).mean() / scale, rel=1e-3)
    page = (folder / "run/report.html").read_text()
    assert "Forecasts of the last validation steps" in page
    assert "Always answering the value of a season before" in page


def test_parts_follow_each_other_in_time(tmp_path):
    data = DataSettings([write_data("forecast", tmp_path / "train", 200, 1)])
    parts = RUN.read_texts(data, seed=1)
    borders = {name: (int(part.begins[0]), int(part.ends[0])) for name, part in parts.items()}
    assert borders == {"train": (0, 160), "validation": (160, 180), "test": (180, 200)}
    whole = RUN.read_texts(data, seed=1, whole=True)
    assert len(whole["train"]) == 200
    held = DataSettings(data.train, test=[], hold_out=30)
    parts = RUN.read_texts(held, seed=1)
    assert {name: len(part) for name, part in parts.items()} == {"train": 170, "validation": 30}


@pytest.mark.slow
def test_known_covariates_are_used_and_scales_do_not_matter(tmp_path):
    data, out = shops(), tmp_path / "run"
    options = {"columns": SHOPS, "horizon": 4, "context": 12, "model": SIZES}
    task = Task.from_preset("forecast_tiny", data, **options)
    task.fit(data, out=out, epochs=40, batch_tokens=512, validate_every=50)
    found = keras_attn.load(out / "task")
    results = found.evaluate(shops(seed=2))
    # A day off changes by 5 what the naive forecast does not know.
    assert results["mase"] < 0.6 * results["naive_mase"]
    both = {name: frame.reset_index() for name, frame in shops(seed=3).groupby("shop")}
    past = [both[name][["sold", "off"]].to_numpy()[:70] for name in "ab"]
    future = np.stack([both[name][["off"]].to_numpy()[70:74] for name in "ab"])
    effect = found.median(past, future * 0 + 1) - found.median(past, future * 0)
    np.testing.assert_allclose(effect[:, :, 0], [[5] * 4, [50] * 4], rtol=0.3)


@pytest.mark.slow
def test_arrays_are_trained_on_without_columns(tmp_path):
    values = np.stack([np.sin(np.arange(90) * 2 * np.pi / SEASON), np.arange(90) % 5], axis=1)
    task = Task.from_preset("forecast_tiny", values, horizon=3, context=10, model=SIZES)
    result = task.fit(values, out=tmp_path / "run", steps=4)
    assert task.predict(values[None]).shape == (1, 3, 2, 9)
    assert {"mase", "naive_mase", "items"} <= set(result.test)
    assert "nll" not in result.history[-1]


MISTAKES = [
    ({"tokenizers": {"text": {"kind": "symbols"}}}, "Series need no `tokenizers`"),
    ({"training": {"label_smoothing": 0.1}}, "no `training.label_smoothing` .*label_smoothing=0.1"),
    ({"training": {"metric": "perplexity"}}, "`training.metric` must be one of 'loss', 'mase'"),
    ({"metrics": ["bleu"]}, "must be one of 'mase', 'mae'"),
    ({"model": {"horizon": 3}}, "follows from the data: set `data.horizon`. Received: horizon=3"),
    ({"model": {"quantiles": [0.1, 0.9]}}, "with 0.5 among them"),
    ({"data": {"max_source_length": 9}}, "Series have no `data.max_source_length`"),
    ({"data": {"columns": {"text": "y"}}}, "`columns` must be one of 'time', 'target'"),
    ({"data": {"hold_out": 3}}, "at least the horizon. Received: hold_out=3, horizon=7"),
    ({"data": {"horizon": 90}}, "nothing is left for .*has 90 steps, and 90 are to be forecast"),
    ({"data": {"time_steps": "days"}}, "`time_steps` must be one of 'equal', 'rows'"),
    ({"attention": {"name": "dens"}}, "Did you mean 'dense'"),
]


@pytest.mark.parametrize(("settings", "message"), MISTAKES)
def test_mistakes(settings, message, tmp_path):
    data = {"train": write_data("forecast", tmp_path / "train", 90, 1)}
    refused(message, job.train, tmp_path / "run", base("forecast", data), settings)


def test_other_tasks_have_no_settings_of_series(tmp_path):
    data = {"train": write_data("classification", tmp_path / "train", 20, 1), "horizon": 3}
    message = "The task 'classification' has no series, and no `data.horizon`. Received: horizon=3"
    refused(message, job.train, tmp_path / "run", base("classification", data))


def test_mistakes_at_the_command_line(run, tmp_path, capsys):
    folder, _ = run
    model, constant = str(folder / "run"), written(tmp_path / "constant.csv", ["y", *"5" * 60])
    commas = written(tmp_path / "commas.csv", ["day;y", "1;", *(f"{day};1,5,0" for day in "234")])
    commands = {
        ("predict", model): "needs the name of a table",
        ("predict", model, "absent.csv"): "absent.csv: no such file",
        ("predict", model, constant): "no column 'day'",
        ("predict", model, constant, "--n-best", "2"): "do not apply to forecasts",
        ("evaluate", model, "--data", str(folder / "test"), "--beams", "2"): "no beams",
        ("train", "--preset", "forecast_tiny", "--data", constant, "--out", str(tmp_path / "x")):
            "No window|no window",
        ("data", commas, "--task", "forecast", "--columns", "time=day", "target=y"):
            "no target has a value. malformed: ",
    }  # fmt: skip
    for command, message in commands.items():
        assert main(list(command)) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert any(part in error for part in message.split("|")), error


@pytest.mark.parametrize(
    ("season", "steps", "context"),
    [(7, 630, 63), (7, 629, 56), (7, 340, 32), (24, 1500, 144), (28, 9000, 252), (29, 9000, 58)],
)
def test_the_context_has_as_many_seasons_as_a_tenth_of_the_series(season, steps, context):
    table = types.SimpleNamespace(ends=lambda: np.array([steps]))
    part = types.SimpleNamespace(table=table, season=season)
    assert context_of(DataSettings([]), part) == context


# The least error that any forecast can have follows from the numbers that made the series.
PROCESSES = {"AR(1)": (0.8, 1), "seasonal AR(1)": (0.8, 12), "random walk": (1, 1)}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_it_is_within_5_percent_of_the_best_forecast(name, tmp_path):
    factor, lag = PROCESSES[name]
    draw, steps = np.random.default_rng(3), 2500
    noise, values = draw.normal(size=steps), np.zeros(steps)
    for step in range(lag, steps):
        values[step] = factor * values[step - lag] + noise[step]
    values = 100 + 5 * values[500:]
    file = written(tmp_path / "made.csv", ["y", *map(str, values)])
    results = job.train(tmp_path / "run", {"preset": "forecast_tiny", "data": {"train": [file]}})
    task = Task.load(tmp_path / "run/task")
    origins = np.arange(2000 - 200, 2000 - task.horizon + 1)
    actual = np.stack([values[at : at + task.horizon] for at in origins])
    ahead = np.arange(task.horizon) // lag + 1
    lasts = np.stack([values[at - lag + np.arange(task.horizon) % lag] for at in origins])
    best = 100 + factor**ahead * (lasts - 100)
    deviation = 5 * np.sqrt([sum(factor ** (2 * step) for step in range(count)) for count in ahead])
    normal = pandas.Series([-1.2816, -0.8416, -0.5244, -0.2533, 0, 0.2533, 0.5244, 0.8416, 1.2816])
    quantiles = best[..., None] + deviation[:, None] * normal.to_numpy()
    assert results["mae"] <= 1.05 * np.abs(actual - best).mean()
    least = pinball(actual, quantiles, task.quantiles).mean()
    found = task.predict([values[:at] for at in origins])[:, :, 0]
    assert pinball(actual, found, task.quantiles).mean() <= 1.05 * least


def test_data_says_what_train_does_with_malformed_rows(tmp_path, capsys):
    rows = [f"{day},{'abc' if day == 7 else day}" for day in range(60)]
    path = written(tmp_path / "odd.csv", ["day,y", *rows])
    command = ["data", path, "--task", "forecast", "--columns", "time=day", "target=y"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "1 malformed rows left out." in shown
    assert "`train` stops at malformed rows; --skip-bad-lines leaves them out" in shown

"""The search around trials that are not trained but invented."""

import csv
import json
import re
import socket

import keras_tuner
import pytest
import yaml

from keras_attn.training.run_settings import RunSettings, flat, read_yaml
from keras_attn.training.workers.cluster import WorkerLost
from keras_attn.tuning import trial_runs
from keras_attn.tuning.tune import tune
from keras_attn.tuning.tuning_settings import TuningSettings
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

BASE = {"preset": "g2p_small", "data": {"train": ["words.tsv"]}}
SPACE = {"model.num_layers": {"min": 1, "max": 6}, "model.dropout": {"min": 0.0, "max": 0.4}}


@pytest.fixture
def trained(monkeypatch):
    """Stands in for training; returns the settings of the runs that were begun.

    PER is the number of layers, with 3 layers the run fails.
    """
    runs = []

    def train(run, settings, log):
        layers = read_yaml(settings)
        runs.append(layers)
        if layers["model"]["num_layers"] in trained.failing:
            raise keras_tuner.errors.FailedTrialError("out of memory")
        if len(runs) == trained.dies_at:
            raise KeyboardInterrupt
        run.mkdir(parents=True, exist_ok=True)
        RunSettings.resolve(layers).write(run / "run.yaml")
        value = layers["model"]["num_layers"] + layers["model"]["dropout"]
        (run / "summary.json").write_text(json.dumps({"value": value}))

    trained = train
    trained.failing, trained.dies_at = {3}, None
    monkeypatch.setattr(trial_runs, "train", train)
    return runs, trained


def rows(folder):
    with (folder / "trials.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("algorithm", ["random", "bayesian"])
def test_a_search(tmp_path, trained, capsys, algorithm):
    runs, _ = trained
    out = tmp_path / "search"
    tuning = TuningSettings(algorithm=algorithm, trials=8, trial_minutes=1.5)
    best = tune(out, BASE, {"training": {"seed": 7}}, space=SPACE, tuning=tuning)
    assert len(runs) == 8
    assert all(settings["training"]["seed"] == 7 for settings in runs)
    assert all(settings["training"]["max_minutes"] == 1.5 for settings in runs)
    assert all(settings["data"]["test"] == [] for settings in runs)
    good = [s["model"] for s in runs if s["model"]["num_layers"] != 3]
    least = min(model["num_layers"] + model["dropout"] for model in good)
    assert best.value == pytest.approx(least)
    found = rows(out)
    assert len(found) == 8
    values = [float(row["per"]) for row in found if row["per"]]
    assert values == sorted(values)
    assert len(values) == len(good)
    assert all(row["message"] == "out of memory" for row in found if row["status"] == "FAILED")
    # The best settings are those of a whole training, ready for `train --config`.
    settings = RunSettings.read(out / "best.yaml")
    assert settings.model["num_layers"] + settings.model["dropout"] == pytest.approx(least)
    assert settings.training.max_minutes is None
    assert settings.training.epochs == RunSettings.resolve(BASE).training.epochs
    assert settings.data.test is None
    assert (out / "trials.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert f"keras-attn train --config {out / 'best.yaml'}" in printed.replace("\n", " ")


def test_interrupted_and_resumed_loses_no_trial(tmp_path, trained):
    runs, train = trained
    train.failing, train.dies_at = set(), 4
    tuning = TuningSettings(algorithm="random", trials=6)
    with pytest.raises(KeyboardInterrupt):
        tune(tmp_path, BASE, space=SPACE, tuning=tuning)
    assert len(runs) == 4
    # What is finished stands in the table already.
    assert [row["status"] for row in rows(tmp_path)].count("COMPLETED") == 3
    train.dies_at = None
    tune(tmp_path, BASE, space=SPACE, tuning=tuning, resume=True)
    # The fourth is run again, the three before it are not.
    assert len(runs) == 7
    assert runs[4]["model"] == runs[3]["model"]
    assert [row["status"] for row in rows(tmp_path)] == ["COMPLETED"] * 6


def test_resumed_with_what_is_recorded(tmp_path, trained):
    runs, train = trained
    train.failing, train.dies_at = set(), 2
    with pytest.raises(KeyboardInterrupt):
        tune(tmp_path, BASE, space=SPACE, tuning=TuningSettings("random", trials=3, seed=5))
    train.dies_at = None
    tune(tmp_path, resume=True)
    assert len(runs) == 4
    assert runs[2] == runs[1]
    search = read_yaml(tmp_path / "search.yaml")
    assert (search["settings"], search["tuning"]["seed"]) == (BASE, 5)
    tune(tmp_path, tuning=TuningSettings("random", trials=4, seed=5), resume=True)
    assert len(runs) == 5


def test_nothing_to_resume(tmp_path):
    refused("The folder contains no search to resume", tune, tmp_path / "out", resume=True)


def test_hyperband_gives_epochs(tmp_path, trained):
    runs, train = trained
    train.failing = set()
    tune(tmp_path, BASE, space=SPACE, tuning=TuningSettings("hyperband", trial_epochs=4))
    assert {settings["training"]["epochs"] for settings in runs} == {2, 4}


def test_all_trials_failed(tmp_path, trained):
    _, train = trained
    train.failing = set(range(10))
    with pytest.raises(UserError, match="All 3 trials failed: out of memory."):
        tune(tmp_path, BASE, space=SPACE, tuning=TuningSettings(trials=3))
    assert len(rows(tmp_path)) == 3
    assert not (tmp_path / "best.yaml").exists()


def test_time_limit(tmp_path, trained):
    with pytest.raises(UserError, match="All 0 trials failed: no trial started."):
        tune(tmp_path, BASE, space=SPACE, tuning=TuningSettings(minutes=1e-9))


def test_folder_and_settings_are_checked(tmp_path, trained):
    _, train = trained
    train.failing = set()
    tuning = TuningSettings(trials=1)
    tune(tmp_path, BASE, space=SPACE, tuning=tuning)
    with pytest.raises(UserError, match="must be empty, or the run in it resumed"):
        tune(tmp_path, BASE, space=SPACE, tuning=tuning)
    with pytest.raises(UserError, match="must have the same space"):
        tune(tmp_path, BASE, space={"model.num_layers": [1, 2]}, tuning=tuning, resume=True)
    with pytest.raises(UserError, match="must have the same settings"):
        tune(tmp_path, BASE | {"metrics": ["wer"]}, space=SPACE, tuning=tuning, resume=True)
    assert read_yaml(tmp_path / "search.yaml")["tuning"]["trials"] == 1


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"model.num_layerz": [1, 2]}, "Did you mean 'num_layers'?"),
        ({"model.num_layerz": 1}, "Did you mean 'num_layers'?"),
        ({"training.learning_rat": [0.1]}, "Did you mean `learning_rate`?"),
        ({"training.learning_rate": {"min": -1.0, "max": 1.0}}, "`learning_rate` must be above 0"),
        ({"model.hidden_dim": ["a", "b"]}, "`model.hidden_dim` must be a whole number"),
        ({"model.num_heads": [3]}, "Received: num_heads=3, hidden_dim="),
        ({"model.num_heads": [2, 3]}, "Received: num_heads=3, hidden_dim="),
        ({"positions": {"none": {"model.absolute": False}}}, "Received: model setting='absolute'"),
    ],
)
def test_a_value_that_no_trial_could_have_is_told_at_once(tmp_path, trained, space, message):
    refused(re.escape(message), tune, tmp_path / "out", BASE, space=space)
    assert not trained[0]
    assert not (tmp_path / "out").exists()


def test_an_attention_that_there_is_not(tmp_path, trained):
    base = {"preset": "encoder_tiny", "data": {"train": ["words.tsv"]}}
    with pytest.raises(UserError, match="Received: attention='foo'"):
        tune(tmp_path / "out", base, space={"attention.name": ["dense", "foo"]})
    assert not trained[0]


def test_a_metric_that_there_is_not_is_named_as_it_was_set(tmp_path, trained):
    with pytest.raises(UserError, match=r"`training.metric` must .* training.metric='foo'"):
        tune(tmp_path / "out", BASE, {"training": {"metric": "foo"}}, space=SPACE)


@pytest.mark.parametrize("begun", [False, True])
def test_a_worker_without_a_chief_gives_up(tmp_path, trained, monkeypatch, capfd, begun):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker0")
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))
    if begun:
        (tmp_path / "search.yaml").write_text("{}")
    with pytest.raises(WorkerLost) as caught:
        tune(tmp_path, BASE, {"training": {"join_timeout": 0.5}}, space=SPACE)
    assert f"The chief at 127.0.0.1:{port} " in caught.value.reason
    output, error = capfd.readouterr()
    assert f"Waiting up to 0.5 s for the chief at 127.0.0.1:{port}." in output
    assert error == f"keras-attn: {caught.value.reason}\n"


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"algorithm": "grid"}, "`algorithm` must be one of"),
        ({"trials": 0}, "`trials` must be"),
        ({"minutes": -1}, "`minutes` must be above 0"),
        ({"max_parameters": 0}, "`max_parameters` must be"),
        ({"algorithm": "hyperband"}, "Hyperband needs `trial_epochs`"),
    ],
)
def test_numbers_are_checked(numbers, message):
    refused(message, TuningSettings, **numbers)


def test_yaml_of_a_search_is_plain(tmp_path, trained):
    trained[1].failing = set()
    tune(tmp_path, BASE, space=SPACE, tuning=TuningSettings(trials=1))
    text = (tmp_path / "search.yaml").read_text()
    assert yaml.safe_load(text)["space"]["model.dropout"] == {"min": 0.0, "max": 0.4}


@pytest.mark.parametrize(
    ("given", "unvaried"),
    [
        ({"training": {"batch_tokens": 256}}, {"training.batch_tokens"}),
        pytest.param(
            {"training": {"learning_rate": 0.002}},
            {"training.learning_rate"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"model": {"num_layers": 2, "norm_first": False}},
            {"model.num_layers", "model.norm_first"},
            marks=pytest.mark.slow,
        ),
        ({"model": {"rotary_positions": True}}, {"positions"}),
    ],
)
def test_a_setting_that_is_given_is_not_varied(tmp_path, trained, given, unvaried):
    from keras_attn.tuning.spaces import SPACES

    runs, train = trained
    train.failing = set()
    vary = {"model.num_layers": {"min": 1, "max": 6}, "model.dropout": {"min": 0.0, "max": 0.4}}
    vary = {name: vary[name] for name in vary if name not in unvaried}
    # What a configuration says is varied all the same.
    config = BASE | {"training": {"warmup_steps": 77}}
    tuning = TuningSettings(algorithm="random", trials=4)
    tune(tmp_path, given, config=config, space=vary, tuning=tuning)
    found = [flat(settings) for settings in runs]
    assert all(settings[name] == value for settings in found for name, value in flat(given).items())
    assert len({settings["training.warmup_steps"] for settings in found}) > 1
    space = read_yaml(tmp_path / "search.yaml")["space"]
    assert set(SPACES["Transformer"]) - set(space) == unvaried - set(vary)


def test_a_setting_is_not_both_given_and_varied(tmp_path):
    with pytest.raises(
        UserError, match=r"must not be both given and varied .*model.num_layers=2\."
    ):
        tune(tmp_path / "out", BASE, {"model": {"num_layers": 2}}, space=SPACE)
    assert not (tmp_path / "out").exists()

"""Options of `tune` as settings of a search."""

import dataclasses
import importlib.util

import pytest

from keras_attn.cli import tune as tune_command
from keras_attn.tuning.tuning_settings import TuningSettings


@pytest.fixture
def called(keras_attn, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "keras_attn.tuning.tune.tune", lambda *layers, **options: calls.append((layers, options))
    )

    def call(*arguments):
        status, _, error = keras_attn("tune", "--out", "search", *arguments)
        assert (status, error) == (0, "")
        return calls[-1]

    return call


def test_options(called, tmp_path):
    space = tmp_path / "space.yaml"
    space.write_text("model.num_layers: [1, 2]\n")
    layers, options = called(
        "--preset", "g2p_small", "--data", "a.tsv", "--set", "metrics=[wer]", "--seed", "5",
        "--space", str(space), "--algorithm", "random", "--trials", "3", "--trial-minutes", "0.5",
        "--max-parameters", "1000000", "--resume",
    )  # fmt: skip
    out, *settings = layers
    assert out == "search"
    assert settings == [
        {"metrics": ["wer"]},
        {
            "preset": "g2p_small",
            "init": None,
            "data": {"train": ["a.tsv"]},
            "training": {"seed": 5},
        },
    ]
    assert options == {
        "config": {},
        "space": {"model.num_layers": [1, 2]},
        "tuning": TuningSettings(
            "random", trials=3, trial_minutes=0.5, max_parameters=1_000_000, seed=5
        ),
        "resume": True,
    }


def test_numbers_that_are_not_given_are_those_recorded(called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search.yaml").write_text("tuning: {trials: 5, seed: 7}\n")
    _, options = called("--resume", "--trials", "6")
    assert options["tuning"] == TuningSettings(trials=6, seed=7)


def test_the_options_are_the_numbers_of_a_search():
    names = [field.name for field in dataclasses.fields(TuningSettings)]
    assert list(tune_command._NUMBERS) == names


def test_several_workers_are_processes(keras_attn, monkeypatch):
    started = []
    monkeypatch.setattr(
        "keras_attn.tuning.processes.run_chief_and_workers",
        lambda command, workers: started.append((command, workers)) or 3,
    )
    arguments = ["tune", "--preset", "g2p_small", "--out", "search", "--workers", "2"]
    assert keras_attn(*arguments)[0] == 3
    ((command, workers),) = started
    assert (command[-len(arguments) :], workers) == (arguments, 2)


@pytest.mark.parametrize("role", ["alone", "chief", "worker0"])
def test_each_process_of_a_search_makes_its_settings(called, monkeypatch, role):
    workers = 1 if role == "alone" else 2
    monkeypatch.setattr("keras_attn.tuning.processes.tuning_role", lambda: role)
    layers, options = called("--preset", "g2p_small", "--trials", "1", "--workers", str(workers))
    assert layers[-1] == {"preset": "g2p_small", "init": None}
    assert options["tuning"] == TuningSettings(trials=1, workers=workers)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algorithm", "grid"], "`algorithm` must be one of 'random', 'bayesian', 'hyperband'."),
        (["--trials", "0"], "`trials` must be"),
        (["--set", "model.num_heads=0.5.", "--space", "nowhere.yaml"], "no such file of settings"),
        (["--preset", "g2p_smal"], "Did you mean 'g2p_small'?"),
    ],
)
def test_mistakes_take_one_line(keras_attn, tmp_path, arguments, message):
    given = ["--out", tmp_path / "search", "--preset", "g2p_small", "--data", "a.tsv", *arguments]
    assert message in keras_attn.refusal("tune", *given)


def test_without_keras_tuner(keras_attn, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "keras_tuner" else found(name, *rest),
    )
    assert "pip install 'keras_attn[tune]'" in keras_attn.refusal("tune", "--out", "search")

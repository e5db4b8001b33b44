"""Real trials, by real processes."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest

from keras_attn.tuning.processes import run_chief_and_workers, tuning_role
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.training.made_run import write_words

pytestmark = pytest.mark.tensorflow


def search(folder, *options):
    data = write_words(folder / "words.tsv", 80, seed=1)
    space = folder / "space.yaml"
    space.write_text(
        "model.num_layers: {min: 1, max: 3}\nmodel.hidden_dim: [8, 12]\n"
        "model.intermediate_dim: 11\nmodel.num_heads: [2, 3]\nmodel.dropout: 0.1\n"
        "model.norm_first: true\npositions: {sinusoidal: {}}\n"
        "training.learning_rate: {min: 1.0e-3, max: 1.0e-2, log: true}\n"
        "training.warmup_steps: 2\ntraining.batch_tokens: 200\n"
    )
    return [
        *[sys.executable, "-m", "keras_attn", "tune", "--preset", "g2p_small", "--data", data],
        *["--out", str(folder / "search"), "--space", str(space), "--algorithm", "random"],
        *["--trial-epochs", "2", *options],
    ]


def rows(folder):
    with (folder / "search" / "trials.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_chief_and_workers_share_the_trials(tmp_path):
    command = search(tmp_path, "--trials", "5", "--workers", "2")
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = rows(tmp_path)
    assert len(found) == 5
    # Three heads do not divide 8: such trials fail, and say why.
    unfit = [
        row for row in found if (row["model.num_heads"], row["model.hidden_dim"]) == ("3", "8")
    ]
    assert {row["status"] for row in unfit} <= {"FAILED"}
    assert all("must divide" in row["message"] for row in found if row["status"] == "FAILED")
    runs = [
        (folder / "log.txt").read_text() for folder in (tmp_path / "search/trials").glob("trial_*")
    ]
    assert len(runs) == 5
    assert all(log.count("validation:") <= 1 for log in runs), "a trial was run twice"


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed(tmp_path):
    process = subprocess.Popen(search(tmp_path, "--trials", "3"), start_new_session=True)
    trials = tmp_path / "search" / "trials"
    while not any("COMPLETED" in path.read_text() for path in trials.glob("trial_*/trial.json")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in trials.glob("trial_*/run/summary.json")}
    command = search(tmp_path, "--trials", "3", "--resume")
    subprocess.run(command, timeout=900, check=True)
    assert len(rows(tmp_path)) == 3
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())


PLACE = {"KERASTUNER_ORACLE_IP": "127.0.0.1", "KERASTUNER_ORACLE_PORT": "8000"}


@pytest.fixture
def set_variables(monkeypatch):
    def set_them(values):
        for name in ("KERASTUNER_TUNER_ID", *PLACE):
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_them


def test_roles(set_variables):
    set_variables({})
    assert tuning_role() == "alone"
    for name, role in (("chief", "chief"), ("worker3", "worker")):
        set_variables({"KERASTUNER_TUNER_ID": name} | PLACE)
        assert tuning_role() == role


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"KERASTUNER_ORACLE_IP": "127.0.0.1"}, "KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_PORT"),
        ({"KERASTUNER_TUNER_ID": "chief"}, "KERASTUNER_ORACLE_IP, KERASTUNER_ORACLE_PORT"),
        (PLACE, "KERASTUNER_TUNER_ID"),
        (PLACE | {"KERASTUNER_TUNER_ID": ""}, "KERASTUNER_TUNER_ID"),
    ],
)
def test_a_variable_that_is_missing_is_named(set_variables, variables, missing):
    set_variables(variables)
    refused(f"Received: missing='{missing}'", tuning_role)


def test_a_port_that_is_none(set_variables):
    set_variables(PLACE | {"KERASTUNER_TUNER_ID": "chief", "KERASTUNER_ORACLE_PORT": "http"})
    refused("KERASTUNER_ORACLE_PORT must be a port", tuning_role)


ROLE = "import os, sys, time; role = os.environ['KERASTUNER_TUNER_ID'];"


def test_status_is_the_chiefs(tmp_path):
    script = ROLE + "sys.exit(7 if role == 'chief' else 0)"
    assert run_chief_and_workers([sys.executable, "-c", script], 2) == 7


def test_a_worker_that_fails_ends_all(tmp_path):
    script = ROLE + "sys.exit(3) if role == 'worker1' else time.sleep(60)"
    with pytest.raises(UserError, match="Worker 1 of the search ended with status 3"):
        run_chief_and_workers([sys.executable, "-c", script], 2)

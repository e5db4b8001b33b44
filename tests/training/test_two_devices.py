import json
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.tensorflow

PROJECT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found():
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.two_devices"],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("kind", "updates"), [("single", 5), ("accumulated", 3)])
def test_two_devices_equal_one(found, kind, updates):
    result = found[kind]
    assert result["updates"] == updates
    assert result["moved"] > 1e-3
    assert result["weights"] < 2e-15
    assert result["sums"] < 2e-15


def test_each_replica_drops_out_its_own(found):
    assert found["dropout"] == {
        "replicas_differ": True,
        "calls_differ": True,
        "first_as_alone": True,
        "states": [[7, 2], [7, 2]],
        "state_alone": [7, 2],
    }


def test_interrupted_run_on_two_devices_goes_on_exactly(found):
    assert found["run"] == {"status": 130, "equal": True}

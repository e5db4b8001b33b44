from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.training.module_process import finished, start_module

pytestmark = pytest.mark.tensorflow

STEPS = 21  # 7 updates of up to two batches in each of 3 epochs
start = partial(start_module, "tests.training.killed_run")


def finish(process, status=0):
    return finished(process, status)[0]


def final_arrays(folder):
    return load_file(folder / "checkpoints" / f"step-{STEPS:08d}" / "state.safetensors")


def assert_equal_runs(folder, other):
    assert (folder / "metrics.csv").read_bytes() == (other / "metrics.csv").read_bytes()
    ours, theirs = final_arrays(folder), final_arrays(other)
    assert any("seed_generator_state" in name for name in ours)
    np.testing.assert_equal(ours, theirs)
    assert (folder / "summary.json").read_text() == (other / "summary.json").read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    finish(start(folder, 0))
    return folder


def test_killed_and_resumed_run_is_the_whole_run_to_the_bit(tmp_path, whole):
    # The last checkpoint before the kill is that of step 8, within the second epoch.
    finish(start(tmp_path / "run", 11), status=-9)
    rows = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert rows[-1].startswith("9,")
    output = finish(start(tmp_path / "run", 0, "resume"))
    assert "step-00000008 (epoch 2, step 8)" in output
    assert_equal_runs(tmp_path / "run", whole)


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 4, 6, 7, 8, 12, 15, 20])
def test_killed_twice_anywhere(tmp_path, whole, first):
    finish(start(tmp_path / "run", first), status=-9)
    # The last one goes on from step 16, and dies once more after the run's last update.
    finish(start(tmp_path / "run", 5, "resume"), status=-9)
    finish(start(tmp_path / "run", 0, "resume"))
    assert_equal_runs(tmp_path / "run", whole)


@pytest.mark.slow
def test_same_seed_twice_is_the_same_run(tmp_path, whole):
    finish(start(tmp_path / "run", 0))
    assert_equal_runs(tmp_path / "run", whole)

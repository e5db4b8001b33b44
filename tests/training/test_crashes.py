"""SIGKILL at random moments of `keras-attn train`: in updates, checkpoints, decoding."""

import pathlib
import random
import signal
import time

import numpy as np
import pytest
import yaml

from tests.training.made_run import run_settings, write_words
from tests.training.two_workers import metrics, start, statuses, weights

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing happens to: its folder, its configuration, and how long it takes."""
    folder = tmp_path_factory.mktemp("crashes")
    data = write_words(folder / "words.tsv", 150, seed=1)
    settings = run_settings(
        data, epochs=12, checkpoint_every=2, validate_every=5, average_last=2, deterministic=True
    )
    settings["model"]["dropout"] = 0.3
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    ended = statuses([start(folder / "whole", config)])
    assert ended["codes"] == [0]
    return folder / "whole", config, ended["seconds"]


@pytest.fixture(scope="module")
def landed():
    """For every kill, whether the run was going; most must have been, or nothing was tested."""
    kills = []
    yield kills
    assert sum(kills) >= len(kills) / 2


@pytest.mark.parametrize("seed", range(20))
def test_a_run_killed_twice_is_the_whole_run_to_the_bit(tmp_path, whole, landed, seed):
    expected, config, seconds = whole
    moment, run = random.Random(seed), tmp_path / "run"
    for resume in (False, True):
        process = start(run, config, resume=resume)
        time.sleep(moment.uniform(0.2, 1) * seconds)
        process.kill()
        process.wait()
        landed.append(process.returncode == -signal.SIGKILL)
        print("killed at", newest(run), "with", process.returncode)
    assert statuses([start(run, config, resume=True)])["codes"] == [0]
    assert (run / "summary.json").read_text() == (expected / "summary.json").read_text()
    assert metrics(run) == metrics(expected)
    np.testing.assert_equal(weights(run), weights(expected))


def newest(run: pathlib.Path) -> str:
    """The last checkpoint, and what was being written."""
    names = {path.name for path in (run / "checkpoints").glob("*")} | {"nothing"}
    return ", ".join(sorted(names)[-1:] + [name for name in names if name.startswith(".")])

"""Runs of each task that are interrupted in their second epoch, and resumed to the bit."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_attn.training import run as job
from tests.training.stand_in import metrics_rows
from tests.training.task_runs.made import base, write_data

pytestmark = pytest.mark.tensorflow

RUNS = {
    "classification": {"model": {"dropout": 0.1}},
    "image_classification": {"model": {"dropout": 0.3, "random_shift": 1}},
    "embedding": {},
    "causal_lm": {},
    "masked_lm": {"data": {"whole_words": True}},  # in each epoch other tokens are masked
    "span_corruption": {"data": {"noise_density": 0.3, "mean_noise_span_length": 2}},
    "token_classification": {"model": {"dropout": 0.1}},
    "forecast": {"model": {"dropout": 0.1}},  # in each epoch other windows are mixed
}


def variables(checkpoint):
    """The variables by number, since a process counts the names of its layers."""
    arrays = load_file(checkpoint / "state.safetensors")
    found = {"/".join(name.split("/")[:2]): values for name, values in arrays.items()}
    assert len(found) == len(arrays)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("task", RUNS)
def test_a_killed_and_resumed_run_ends_alike(task, tmp_path):
    data = {"train": write_data(task, tmp_path / "data", 90, 1), "hold_out": 9}
    numbers = {"batch_tokens": 128, "epochs": 2, "log_every": 1}
    numbers |= {"validate_every": 0, "label_smoothing": 0.0}
    layers = base(task, data, **numbers), RUNS[task]
    job.train(tmp_path / "whole", *layers)
    expected = metrics_rows(tmp_path / "whole")
    steps = len(expected) // 2
    assert steps > 2
    ends = {"training": {"steps": steps + 2, "checkpoint_every": 1}}
    job.train(tmp_path / "halves", *layers, ends)
    job.train(tmp_path / "halves", {"training": {"epochs": 2}}, resume=True)
    found = metrics_rows(tmp_path / "halves")
    for name in ("step", "epoch", "loss"):
        assert [row[name] for row in found] == [row[name] for row in expected]
    assert found[-1] == expected[-1]
    last = [max((tmp_path / name / "checkpoints").glob("step-*")) for name in ("whole", "halves")]
    assert last[0].name == last[1].name
    np.testing.assert_equal(*map(variables, last))

"""Runs of each task that are interrupted in their second epoch, and resumed to the bit."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_attn.training import run as job
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
}


def rows(folder):
    return [row.split(",") for row in (folder / "metrics.csv").read_text().splitlines()]


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
    numbers = {"batch_tokens": 128, "epochs": 2, "steps": None, "log_every": 1}
    numbers |= {"validate_every": 0, "label_smoothing": 0.0}
    layers = base(task, data, **numbers), RUNS[task]
    job.train(tmp_path / "whole", *layers)
    expected = rows(tmp_path / "whole")
    steps = (len(expected) - 1) // 2
    assert steps > 2
    ends = {"training": {"steps": steps + 2, "checkpoint_every": 1}}
    job.train(tmp_path / "halves", *layers, ends)
    job.train(tmp_path / "halves", {"training": {"steps": None}}, resume=True)
    found = rows(tmp_path / "halves")
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    assert expected[0][:3] == ["step", "epoch", "loss"]
    assert dict(zip(found[0], found[-1], strict=True)) == dict(
        zip(expected[0], expected[-1], strict=True)
    )
    last = [max((tmp_path / name / "checkpoints").glob("step-*")) for name in ("whole", "halves")]
    assert last[0].name == last[1].name
    whole, halves = map(variables, last)
    assert whole.keys() == halves.keys()
    for number, values in whole.items():
        np.testing.assert_array_equal(values, halves[number], err_msg=number)

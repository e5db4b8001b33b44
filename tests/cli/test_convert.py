"""`convert` and what follows it: predict, export, verify; mistakes take one line."""

import json

import numpy as np
import pytest

from tests.convert.made import BERT, GOLDEN, TEXTS, WEIGHTS, change_tensors, copy_of, truncate

pytestmark = pytest.mark.tensorflow


def test_converted_predicted_exported_verified(keras_attn, tmp_path):
    task, exported = tmp_path / "task", tmp_path / "exported"
    assert keras_attn("convert", BERT, task) == (0, f"{task}\n", "")
    assert keras_attn("export", task, exported)[0] == 0
    status, output, _ = keras_attn("verify", exported)
    assert (status, output.splitlines()[0]) == (0, f"{exported / '1'}: verified")
    expected = np.load(GOLDEN / "bert_outputs.npz")["normalized"]
    for model in (task, exported):
        status, output, error = keras_attn("predict", model, "--", *TEXTS)
        assert status == 0, error
        found = np.array([json.loads(line) for line in output.splitlines()])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_heads_that_are_left_out_are_told(keras_attn, tmp_path):
    folder = copy_of(BERT, tmp_path / "checkpoint")
    head = {"classifier.weight": np.zeros((2, 21), "float32")}
    change_tensors(folder, lambda tensors: tensors | head)
    status, output, error = keras_attn("convert", folder, tmp_path / "task")
    assert (status, output) == (0, f"{tmp_path / 'task'}\n")
    assert error == "Left out: the classifier (classifier.*).\n"


def test_a_mistake_leaves_nothing_behind(keras_attn, tmp_path):
    folder = copy_of(BERT, tmp_path / "checkpoint")
    truncate(folder / WEIGHTS)
    status, output, error = keras_attn("convert", folder, tmp_path / "task")
    assert (status, output, error.count("\n")) == (2, "", 1)
    assert error.startswith(f"keras-attn: error: {folder / WEIGHTS} is damaged: ")
    assert not (tmp_path / "task").exists()

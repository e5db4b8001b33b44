"""Requests that no text could make: an exported graph refuses them before it computes."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.export.c_api import SavedModelError
from keras_attn.tasks.serving import ServingFunction
from tests.export.test_matrix import LENGTH, MATRIX

pytestmark = pytest.mark.tensorflow

KINDS = ["seq2seq Transformer", "causal_lm GPT2", "classification Bert", "masked_lm Bert"]
KINDS += ["token_classification Bert", "embedding Bert"]
IDS = tf.TensorSpec([None, None], tf.int32)


class Sums:
    """A task that adds up ids, of three at most, and counts how often it does so."""

    kind = "sums"

    def __init__(self):
        self.calls = tf.Variable(0)

    def example_texts(self):
        return ["a"]

    def resources(self):
        return [self.calls]

    def _sums(self, ids, factor):
        calls = self.calls.assign_add(1 + 0 * tf.reduce_max(ids))
        return {
            "sum": tf.reduce_sum(ids, axis=1) * factor[:1],
            "calls": tf.fill(tf.shape(ids)[:1], calls),
        }

    def serving_functions(self, n_best, jit=False):
        inputs = {"ids": IDS, "factor": tf.TensorSpec([None], tf.int32)}
        return {"serving_default": ServingFunction(self._sums, inputs, longest={"ids": 3})}


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    folder = export_saved_model(Sums(), tmp_path_factory.mktemp("models") / "sums")
    with CppSavedModel(folder) as model:
        yield lambda ids, factor: model.run(
            "serving_default", {"ids": np.array(ids, np.int32), "factor": np.array(factor)}
        )


@pytest.mark.parametrize(
    ("ids", "factor", "message"),
    [
        ([[1, 1, 1, 1]], [1], r"The input ids must have at most 3 ids in a row. Received:\] \[4\]"),
        ([[1, -2]], [1], r"The input ids must not contain ids below 0. Received:\] \[-2\]"),
        (
            [[1], [1]],
            [1, 2, 3],
            r"The inputs factor, ids must have equal numbers of rows. Received:\] \[3\] \[2\]",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_computed(sums, ids, factor, message):
    (before,) = sums([[1]], [1])["calls"]
    with pytest.raises(SavedModelError, match=message):
        sums(ids, factor)
    assert sums([[1]], [1])["calls"] == before + 1


@pytest.mark.parametrize("ids", [[[1, 2, 3], [4, 0, 0]], [[0]], np.zeros((2, 0)), np.zeros((0, 3))])
def test_what_fits_is_computed(sums, ids):
    found = sums(ids, np.full(len(ids), 2))
    assert found["sum"].tolist() == [2 * int(sum(row)) for row in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_tells_how_many_ids_it_reads(kind):
    task = MATRIX[kind]()
    for name, function in task.serving_functions(1).items():
        ids = {key for key, spec in function.inputs.items() if spec.shape.rank == 2}
        assert set(function.longest) == ids, name
        if not ids:
            continue
        most = {key: min(function.longest[key], LENGTH) for key in ids}
        longest = {key: spec for key, spec in function.inputs.items() if key not in ids}
        inputs = {key: tf.ones([1, *spec.shape[1:]], spec.dtype) for key, spec in longest.items()}
        inputs |= {key: tf.fill([1, length], 4) for key, length in most.items()}
        assert function.function(**inputs)  # the model has so many positions
        assert set(function.longest.values()) <= {LENGTH, 4}

"""Signatures of ids: padding wherever it stands, ids that are none, and batches that are empty."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export.saved_model import _signature
from tests.backends import thinned
from tests.export.test_matrix import MATRIX

pytestmark = pytest.mark.tensorflow

KINDS = [f"{kind} Bert" for kind in ("classification", "masked_lm", "token_classification")]
KINDS += ["embedding Bert", "classification ETC", "image_classification PatchEncoder"]
KINDS += ["seq2seq Transformer", "seq2seq RecurrentSeq2Seq", "causal_lm GPT2"]
OF_IDS = ("token_ids", "n_best_token_ids", "score_token_ids", "sample_token_ids")
# What a user gives, and the same ids with their padding at the end.
GIVEN = [[0, 0, 4, 2, 5, 3], [5, 0, 4, 0, 3, 0], [0, 4, 4, 5, 0, 3]]
ALIGNED = [[4, 2, 5, 3, 0, 0], [5, 4, 3, 0, 0, 0], [4, 4, 5, 3, 0, 0]]
TARGETS = [[0, 0, 5, 2], [5, 0, 4, 2], [0, 2, 0, 0]]
ALIGNED_TARGETS = [[5, 2, 0, 0], [5, 4, 2, 0], [2, 0, 0, 0]]
SAMPLING = {"seed": tf.int64, "temperature": tf.float32, "top_k": tf.int32, "top_p": tf.float32}


@functools.cache
def graphs(kind):
    functions = MATRIX[kind]().serving_functions(1)
    return {name: _signature(function) for name, function in functions.items()}


def inputs_of(graph, ids, targets):
    """Inputs for a graph's arguments, equal settings for each row."""
    values = {}
    for name, spec in graph.structured_input_signature[1].items():
        if name in SAMPLING:
            values[name] = tf.ones([len(ids)], SAMPLING[name])
        elif spec.dtype == tf.string:
            values[name] = tf.zeros([len(ids)], tf.string)
        elif spec.shape.rank > 2:  # images
            values[name] = tf.zeros([len(ids), *spec.shape[1:]], spec.dtype)
        else:
            values[name] = tf.constant(targets if name == "target_ids" else ids, tf.int32)
    return values


@pytest.mark.parametrize(
    "kind", thinned([kind for kind in KINDS if "image" not in kind], on_tensorflow=3)
)
def test_padding_counts_for_nothing_wherever_it_stands(kind):
    for name, graph in graphs(kind).items():
        if name not in OF_IDS:
            continue
        found = graph(**inputs_of(graph, GIVEN, TARGETS))
        right = graph(**inputs_of(graph, ALIGNED, ALIGNED_TARGETS))
        for output, values in right.items():
            of_tokens = (
                kind in ("masked_lm Bert", "token_classification Bert")
                and values.shape[-1 - ("token_classification" in kind)] == 6
            )
            ours, theirs = found[output].numpy(), values.numpy()
            for row in range(3):
                if not of_tokens:
                    np.testing.assert_allclose(ours[row], theirs[row], rtol=1e-4, atol=1e-6)
                    continue
                # A value for each id stands where the id stands.
                real = np.flatnonzero(GIVEN[row])
                axis = 0 if "n_best" not in name else 1
                at, last = np.take(ours[row], real, axis), range(len(real))
                np.testing.assert_allclose(at, np.take(theirs[row], last, axis), rtol=1e-4)


@pytest.mark.slow
def test_a_score_counts_tokens_alone():
    graph = graphs("causal_lm GPT2")["score_token_ids"]
    found = graph(**inputs_of(graph, GIVEN, TARGETS))
    assert found["length"].numpy().tolist() == [2, 3, 1]
    assert (found["log_probability"].numpy() < 0).all()


@pytest.mark.parametrize("kind", thinned(KINDS, on_tensorflow=2))
def test_empty_batches_and_rows_without_an_id(kind):
    """Outputs of the right rank, dtype and number of rows."""
    for name, graph in graphs(kind).items():
        cases = {0: np.zeros((0, 3), "int32")}
        if name in OF_IDS:
            cases[1] = np.zeros((1, 0), "int32")
        for rows, ids in cases.items():
            outputs = graph(**inputs_of(graph, ids, ids))
            for output, spec in graph.structured_outputs.items():
                values = outputs[output]
                assert (values.shape[0], values.dtype) == (rows, spec.dtype), (name, output)
                assert values.shape.rank == spec.shape.rank
                assert values.shape.is_compatible_with(spec.shape)


def test_a_row_without_an_id_continues_as_the_empty_text():
    graphs_of_lm = graphs("causal_lm GPT2")
    from_ids = graphs_of_lm["token_ids"](text_ids=tf.zeros([1, 0], tf.int32))
    from_text = graphs_of_lm["serving_default"](text=tf.constant([""]))
    np.testing.assert_allclose(from_ids["score"], from_text["score"], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_predicted_for_nothing(kind):
    assert len(MATRIX[kind]().predict([])) == 0

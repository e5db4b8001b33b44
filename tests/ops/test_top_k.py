"""The largest of each row, against a stable sort."""

import math

import numpy as np
import pytest

from keras_attn.ops.top_k import top_k
from tests.harness import numbers


def by_sorting(values, k):
    places = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, places, axis=1), places


def check(values, k):
    found, places = (np.array(part) for part in top_k(values, k))
    wanted, wanted_places = by_sorting(values, k)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(places, wanted_places)
    assert places.dtype == "int32"


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("columns", [40, 255, 256, 1000, 8001, 16384])
def test_any_size(columns, k):
    check(numbers(1, 3, columns), k)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_of_equal_values_the_leftmost(k):
    values = np.round(numbers(2, 5, 3001))  # a handful of different ones
    values[0] = 0
    values[1, ::7] = math.inf
    values[2] = -math.inf
    values[2, 2999] = 1
    values[3, 3000] = values[3].max()
    check(values, k)


def test_rows_with_nan_name_columns_that_exist():
    values = np.full((2, 3001), math.nan, "float32")
    values[1, :10] = 1
    _, places = top_k(values, 5)
    assert np.all((np.array(places) >= 0) & (np.array(places) < 3001))


@pytest.mark.tensorflow
@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_in_a_graph_of_any_number_of_rows(jit):
    import tensorflow as tf

    values = numbers(3, 6, 3001)
    signature = [tf.TensorSpec((None, 3001), "float32")]
    function = tf.function(lambda rows: top_k(rows, 4), signature, jit_compile=jit)
    for rows in (6, 1, 3):
        found, places = function(values[:rows])
        wanted, wanted_places = by_sorting(values[:rows], 4)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(places, wanted_places)

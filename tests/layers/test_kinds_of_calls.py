"""Every public layer called in ways that Keras' own layers allow."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.backends import thinned
from tests.harness import arrays, assert_near, built, computed, dtype_of, numpy
from tests.layers.cases import CASES
from tests.layers.differentiation import value_and_gradients


def cases(every=2, on_tensorflow=1):
    return [
        pytest.param(*getattr(case, "values", (case,)), id=of_case.name, marks=marks)
        for of_case, case in zip(CASES, thinned(CASES, every, on_tensorflow), strict=True)
        for marks in [getattr(case, "marks", ())]
    ]


def with_inputs(case, change):
    inputs = {name: change(array) for name, array in case.inputs.items()}
    return type(case)(**(vars(case) | {"inputs": inputs}))


def is_float(array):
    return "float" in str(array.dtype)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
@pytest.mark.parametrize("case", cases())
def test_whole_numbers_are_computed_as_floats(case, dtype):
    def whole(array):
        return np.round(3 * array).astype(dtype) if is_float(array) else array

    layer = built(case)
    given = with_inputs(case, whole)
    expected = with_inputs(case, lambda a: whole(a).astype("float32") if is_float(a) else a)
    found = computed(given, layer)
    assert {dtype_of(x) for x in keras.tree.flatten(found)} <= {"float32", "bool"}
    assert_near(found, computed(expected, layer), 1e-6)


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", cases(on_tensorflow=8))
def test_a_graph_that_knows_no_size(case):
    import tensorflow as tf

    layer = built(case)
    signature = {
        name: tf.TensorSpec([None] * array.ndim, array.dtype) for name, array in case.inputs.items()
    }

    @tf.function(input_signature=[signature], autograph=False)
    def run(inputs):
        outputs = case.call(layer, inputs)
        floats = [y for y in keras.tree.flatten(outputs) if y.dtype.is_floating]
        by = [x for x in inputs.values() if x.dtype.is_floating]
        gradients = tf.gradients(sum(tf.reduce_sum(y) for y in floats), by)
        return outputs, [y for y in gradients if y is not None]

    outputs, gradients = run({name: tf.constant(x) for name, x in case.inputs.items()})
    assert_near(outputs, computed(case, layer), 1e-5)
    assert all(np.isfinite(gradient).all() for gradient in arrays(gradients))


@pytest.mark.parametrize("case", cases(3, on_tensorflow=8))
def test_within_a_scope_that_computes_again(case):
    plain = built(case)
    with keras.RematScope(mode="full"):
        layer = built(case)
    layer.set_weights(plain.get_weights())
    names = [name for name, array in case.inputs.items() if is_float(array)]
    results = []
    if not names and not plain.trainable_variables:
        return  # nothing has a gradient
    for each in (plain, layer):
        weights = list(each.trainable_variables)

        def total(tensors, each=each, weights=weights):
            inputs = dict(case.inputs) | dict(zip(names, tensors, strict=False))
            values = zip(weights, tensors[len(names) :], strict=True)
            with keras.StatelessScope(state_mapping=list(values)):
                outputs = keras.tree.flatten(case.call(each, inputs, training=True))
            return sum(ops.sum(y**2) for y in outputs if "float" in dtype_of(y))

        given = [case.inputs[name] for name in names] + [numpy(w.value) for w in weights]
        results.append(value_and_gradients(total)(given))
    if not any("seed" in variable.path for variable in plain.variables):  # else others are dropped
        assert_near(results[1], results[0], 1e-4)
    else:
        assert all(np.isfinite(x).all() for x in arrays(results[1]))

"""Chunked attention in TensorFlow graphs: unknown shapes, XLA, export."""

import keras
import numpy as np
import pytest

from tests.ops.naive import assert_naive, context_and_gradients
from tests.ops.test_attention import MASKS, chunked, inputs, small_blocks

pytestmark = pytest.mark.tensorflow


def attend_with_masks(query, key, value, upstream, *masks):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch([query, key, value])
        context = small_blocks(query, key, value, mask=masks, is_causal=True)
    return (context, *tape.gradient(context, [query, key, value], upstream))


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
@pytest.mark.parametrize("unknown", ["batch", "lengths"])
def test_unknown_shapes(unknown, jit):
    import tensorflow as tf

    masks = (*MASKS["several"], MASKS["heads"])

    def spec(array, mask):
        known = list(array.shape)
        axes = {"batch": (0,), "lengths": (0, 2, 3) if mask else (0, 2)}[unknown]
        for axis in axes:
            known[axis] = None
        return tf.TensorSpec(known, array.dtype)

    arrays = inputs()
    signature = [spec(array, False) for array in arrays] + [spec(mask, True) for mask in masks]
    function = tf.function(
        attend_with_masks, input_signature=signature, jit_compile=jit, autograph=False
    )
    for target, source in ((11, 13), (3, 2), (9, 1)) if unknown == "lengths" else ((11, 13),):
        arrays = inputs(target, source)
        cut = [mask[:, :, :target, :source] for mask in masks]
        whole = cut[0] & cut[1] & cut[2] & cut[3]
        results = function(*(tf.constant(part) for part in (*arrays, *cut)))
        assert_naive(results, arrays, whole, causal=True)


@pytest.mark.parametrize("mask", ["keys", "dead rows"])
def test_xla_agrees(mask):
    arrays, mask = inputs(), MASKS[mask]
    results = context_and_gradients(
        lambda *arguments: chunked(*arguments, mask=mask, is_causal=True), *arrays, compiled="xla"
    )
    assert_naive(results, arrays, mask, causal=True)


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_dropout_of_a_compiled_call_is_the_same_backward(jit):
    import tensorflow as tf

    generator = keras.random.SeedGenerator(5)

    @tf.function(jit_compile=jit, autograph=False)
    def attend(query, key, value, upstream):
        with tf.GradientTape() as tape:
            tape.watch(value)
            context = small_blocks(query, key, value, dropout=0.4, seed=generator)
        return context, tape.gradient(context, value, upstream)

    query, key, value, upstream = inputs()
    first, grad = (part.numpy() for part in attend(query, key, value, upstream))
    # The context is linear in the values, if the gradient drops the same probabilities.
    assert (grad * value).sum() == pytest.approx((first * upstream).sum(), rel=1e-4)
    second = attend(query, key, value, upstream)[0].numpy()
    assert np.abs(first - second).max() > 0.01


def test_export_has_no_xla_op_and_runs(tmp_path):
    import tensorflow as tf

    module = tf.Module()
    shapes = ((None, 6, None, 5), (None, 3, None, 5), (None, 3, None, 7), (None, 1, 1, None))
    dtypes = ("float32", "float32", "float32", "bool")

    @tf.function(
        input_signature=[tf.TensorSpec(*pair) for pair in zip(shapes, dtypes, strict=True)],
        autograph=False,
    )
    def attend(query, key, value, mask):
        return {"context": chunked(query, key, value, mask=mask, is_causal=True)}

    module.attend = attend
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(tmp_path), {"serving_default": attend}, options)
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    graph = loaded.graph.as_graph_def()
    names = {node.op for node in graph.node}
    for function in graph.library.function:
        names |= {node.op for node in function.node_def}
    assert not [name for name in names if "Xla" in name or "PyFunc" in name]
    query, key, value, _ = arrays = inputs()
    given = {"query": query, "key": key, "value": value, "mask": MASKS["keys"]}
    context = loaded(**{name: tf.constant(part) for name, part in given.items()})["context"]
    assert_naive([context.numpy()], arrays, MASKS["keys"], causal=True)

import numpy as np
import pytest
from keras import ops

from keras_attn.ops.delta_rule import delta_rule, delta_rule_step
from keras_attn.ops.running_sums import STRONGEST_DECAY, running_sums
from tests.harness import assert_close
from tests.ops.naive import context_and_gradients, normal

BATCH, HEADS, KEY_DIM, VALUE_DIM = 2, 3, 5, 7
LENGTHS = [1, 11, 301]  # shorter and longer than a block, and no multiple of one


def inputs(length):
    return (
        normal(BATCH, HEADS, length, KEY_DIM, seed=2),
        normal(BATCH, HEADS, length, KEY_DIM, seed=3),
        normal(BATCH, HEADS, length, VALUE_DIM, seed=4),
    )


def decays(length, width):
    log_decay = -np.abs(normal(BATCH, HEADS, length, width, seed=6)) / 4
    log_decay[:, :, 3:40] = STRONGEST_DECAY
    return log_decay


def rates(length):
    return (1 / (1 + np.exp(-normal(BATCH, HEADS, length, 1, seed=8)))).astype("float32")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def recurrent(query, key, value, log_decay=None, rate=None):
    """Equation 3 of gated linear attention, and the delta rule, position by position in float64."""
    query, key, value = (np.asarray(x, "float64") for x in (query, key, value))
    state = np.zeros((BATCH, HEADS, KEY_DIM, VALUE_DIM))
    outputs = []
    for i in range(query.shape[2]):
        k, v = key[:, :, i, :, None], value[:, :, i, None]
        if log_decay is not None:
            state = state * np.exp(np.float64(log_decay[:, :, i, :, None]))
        if rate is not None:
            v = (v - np.sum(k * state, axis=2, keepdims=True)) * rate[:, :, i, :, None]
        state = state + k * v
        outputs.append(np.sum(query[:, :, i, :, None] * state, axis=2))
    return np.stack(outputs, axis=2), state


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("width", [1, KEY_DIM])
def test_decays_position_by_position(length, width):
    log_decay = decays(length, width)
    found, last = running_sums(*inputs(length), log_decay=log_decay)
    expected, state = recurrent(*inputs(length), log_decay=log_decay)
    # Decays are differences of logarithms that have become as low as -90.
    assert_close(ops.convert_to_numpy(found), expected, atol=2e-4)
    assert_close(ops.convert_to_numpy(last), state, atol=2e-4)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_delta_rule_position_by_position(length):
    query, key, value = inputs(length)
    arrays = (query, unit(key), value)
    found, last = delta_rule(*arrays, rates(length))
    expected, state = recurrent(*arrays, rate=rates(length))
    assert_close(ops.convert_to_numpy(found), expected, atol=2e-5)
    assert_close(ops.convert_to_numpy(last), state, atol=2e-5)


def test_steps_of_the_delta_rule():
    query, key, value = inputs(11)
    arrays = (query, unit(key), value, rates(11))
    expected, _ = recurrent(*arrays[:3], rate=arrays[3])
    memory = ops.zeros((BATCH, HEADS, KEY_DIM, VALUE_DIM))
    for i in range(11):
        context, memory = delta_rule_step(*(x[:, :, i : i + 1] for x in arrays), memory)
        assert_close(ops.convert_to_numpy(context)[:, :, 0], expected[:, :, i], atol=2e-6)


def test_a_new_value_replaces_an_old_one():
    """Of two values written to one key at rate 1 the second is read, not their sum."""
    key = np.zeros((1, 1, 3, 2), "float32")
    key[..., 0] = 1
    value = np.array([[[[3.0], [5.0], [7.0]]]], "float32")
    context, _ = delta_rule(key, key, value, np.array([[[[1.0], [1.0], [0.0]]]], "float32"))
    assert_close(ops.convert_to_numpy(context)[0, 0, :, 0], [3, 5, 5], atol=1e-6)


def stepwise(query, key, value, log_decay=None, rate=None):
    """The recurrence in tensors, for its gradient."""
    state, outputs = ops.zeros((BATCH, HEADS, KEY_DIM, VALUE_DIM)), []
    for i in range(query.shape[2]):
        q, k, v = (x[:, :, i : i + 1] for x in (query, key, value))
        if log_decay is not None:
            state = state * ops.swapaxes(ops.exp(log_decay[:, :, i : i + 1]), -1, -2)
        if rate is not None:
            v = (v - ops.matmul(k, state)) * rate[:, :, i : i + 1]
        state = state + ops.matmul(ops.swapaxes(k, -1, -2), v)
        outputs.append(ops.matmul(q, state))
    return ops.concatenate(outputs, axis=2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["features", "positions", "delta"])
def test_gradients_of_the_recurrence(kind, compiled):
    length = 75
    query, key, value = inputs(length)
    further = rates(length) if kind == "delta" else decays(length, 1 if kind == "positions" else 5)
    arrays = (query, unit(key), value, further, normal(BATCH, HEADS, length, VALUE_DIM, seed=5))
    name = "rate" if kind == "delta" else "log_decay"

    def ours(query, key, value, further):
        function = delta_rule if kind == "delta" else running_sums
        return function(query, key, value, **{name: further})[0]

    def theirs(query, key, value, further):
        return stepwise(query, key, value, **{name: further})

    found = context_and_gradients(ours, *arrays, compiled=compiled)
    expected = context_and_gradients(theirs, *arrays)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, atol=2e-5 * np.abs(b).max())


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["scale", "features", "positions", "delta"])
def test_lengths_that_only_the_running_graph_knows(kind):
    import tensorflow as tf

    query, key, value = inputs(301)
    further = {
        "scale": {"log_scale": decays(301, 1)},
        "features": {"log_decay": decays(301, KEY_DIM)},
        "positions": {"log_decay": decays(301, 1)},
        "delta": {"rate": rates(301)},
    }[kind]
    function = delta_rule if kind == "delta" else running_sums

    def gradients(query, key, value, **further):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value, *further.values()])
            found, last = function(query, key, value, **further)
            total = tf.reduce_sum(found * found) + tf.reduce_sum(last)
        return tape.gradient(total, [query, key, value])

    arrays = {name: tf.constant(x) for name, x in further.items()}
    known = gradients(*map(tf.constant, (query, unit(key), value)), **arrays)
    unknown = [tf.TensorSpec([None, HEADS, None, x.shape[-1]]) for x in (query, key, value)]
    specs = {n: tf.TensorSpec([None, HEADS, None, x.shape[-1]]) for n, x in further.items()}
    graph = tf.function(gradients, autograph=False).get_concrete_function(*unknown, **specs)
    found = graph(*map(tf.constant, (query, unit(key), value)), **arrays)
    for a, b in zip(found, known, strict=True):
        assert_close(a.numpy(), b.numpy(), atol=2e-5 * np.abs(b).max())

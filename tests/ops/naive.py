"""Attention written out row by row in float64, the judge of every implementation, and its tests."""

import numpy as np

from keras_attn.ops.blockwise import segments
from tests.harness import assert_close


def naive_attention(query, key, value, mask=None, bias=None, scale=None, causal=False, keep=None):
    """Returns context and probabilities; `keep` multiplies the probabilities, as dropout does."""
    query, key, value = (np.asarray(part, "float64") for part in (query, key, value))
    batch, heads, target, key_dim = query.shape
    source, group = key.shape[2], heads // key.shape[1]
    scale = key_dim**-0.5 if scale is None else scale
    shape = (batch, heads, target, source)
    mask = np.broadcast_to(True if mask is None else mask, shape)
    bias = np.broadcast_to(0.0 if bias is None else bias, shape)
    keep = np.broadcast_to(1.0 if keep is None else keep, shape)
    context = np.zeros((batch, heads, target, value.shape[-1]))
    probabilities = np.zeros(shape)
    for b, h, t in np.ndindex(batch, heads, target):
        allowed = [
            s
            for s in range(source)
            if mask[b, h, t, s] and (not causal or s - (source - 1) <= t - (target - 1))
        ]
        if not allowed:
            continue
        scores = np.array(
            [scale * query[b, h, t] @ key[b, h // group, s] + bias[b, h, t, s] for s in allowed]
        )
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        probabilities[b, h, t, allowed] = weights
        for s, weight in zip(allowed, weights, strict=True):
            context[b, h, t] += weight * keep[b, h, t, s] * value[b, h // group, s]
    return context, probabilities


def naive_gradients(query, key, value, upstream, mask=None, scale=None, causal=False, keep=None):
    """Returns the gradients of sum(upstream * context), by the softmax's Jacobian of each row."""
    query, key, value, upstream = (
        np.asarray(part, "float64") for part in (query, key, value, upstream)
    )
    _, probabilities = naive_attention(query, key, value, mask, None, scale, causal)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    keep = np.broadcast_to(1.0 if keep is None else keep, probabilities.shape)
    grads = [np.zeros_like(part) for part in (query, key, value)]
    group = query.shape[1] // key.shape[1]
    for b, h, t in np.ndindex(query.shape[:3]):
        p, k, v = probabilities[b, h, t], key[b, h // group], value[b, h // group]
        jacobian = np.diag(p) - np.outer(p, p)
        score_grad = scale * jacobian @ (keep[b, h, t] * (v @ upstream[b, h, t]))
        grads[0][b, h, t] = score_grad @ k
        grads[1][b, h // group] += np.outer(score_grad, query[b, h, t])
        grads[2][b, h // group] += np.outer(p * keep[b, h, t], upstream[b, h, t])
    return grads


def normal(*shape, seed=1):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def assert_naive(found, arrays, mask=None, atol=3e-6, gradient_atol=1e-5, **options):
    """Compares a context, and its gradients where they are given, with the loops.

    Args:
        found: What `context_and_gradients` returned, or the context alone.
        arrays: Query, key, value and the upstream gradient.
        mask: Mask of the pairs.
        atol: Tolerance of the context.
        gradient_atol: Tolerance of the gradients.
        **options: Further options of `naive_attention`.

    Returns:
        The probabilities.
    """
    context, *gradients = found
    expected, probabilities = naive_attention(*arrays[:3], mask, **options)
    np.testing.assert_allclose(context, expected, atol=atol)
    if gradients:
        assert_close(gradients, naive_gradients(*arrays, mask, **options), atol=gradient_atol)
    return probabilities


def context_and_gradients(function, *tensors, compiled=False):
    """Calls a function and its gradient on the backend in use; the last tensor is the upstream."""
    import keras

    if keras.backend.backend() == "jax":
        import jax

        def run(*tensors):
            *inputs, upstream = tensors
            context, pull_back = jax.vjp(function, *inputs)
            return (context, *pull_back(upstream.astype(context.dtype)))

        run = jax.jit(run) if compiled else run
    elif keras.backend.backend() == "torch":

        def run(*tensors):
            *inputs, upstream = tensors
            inputs = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
            context = function(*inputs)
            context.backward(upstream.to(context.dtype))
            return (context, *(x.grad for x in inputs))

    else:
        import tensorflow as tf

        def run(*tensors):
            *inputs, upstream = tensors
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                context = function(*inputs)
            grads = tape.gradient(context, inputs, tf.cast(upstream, context.dtype))
            return (context, *grads)

        run = tf.function(run, jit_compile=compiled == "xla", autograph=False) if compiled else run
    tensors = (keras.ops.convert_to_tensor(part) for part in tensors)
    return [keras.ops.convert_to_numpy(part) for part in run(*tensors)]


def cut_into_segments(monkeypatch, log2):
    """Lets a segment have 2 to that power numbers."""
    monkeypatch.setattr(segments, "SEGMENT_LOG2", log2)
    monkeypatch.setattr(segments, "SEGMENT_LOG2_OF_ACCELERATORS", log2)


def largest_tensor(attend, shapes, differentiated):
    """The most elements of a tensor that a graph of TensorFlow computes, forward and backward."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def run(*tensors):
        inputs = tensors[:differentiated]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            context = attend(*tensors)
        return tape.gradient(context, inputs)

    graph = run.get_concrete_function(*map(tf.TensorSpec, shapes)).graph
    outputs = [output for operation in graph.get_operations() for output in operation.outputs]
    known = [output.shape for output in outputs if output.shape.is_fully_defined()]
    return max(shape.num_elements() or 0 for shape in known)

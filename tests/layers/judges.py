"""Other implementations that judge the layers: NumPy loops, and Keras' own attention."""

import numpy as np
from keras import ops

from tests.harness import assert_close
from tests.ops.naive import naive_attention as attend_naively


def naive_attention(layer, query, value, key=None, mask=None):
    """Multi-head attention by loops over rows, heads and queries, in float64.

    `mask` is boolean (batch, heads, target, source) after broadcasting. Returns output and scores.
    """
    key = value if key is None else key
    kernels, biases = _role_weights(layer)
    q, k, v = (
        _heads(x, kernels[role], biases[role])
        for role, x in (("query", query), ("key", key), ("value", value))
    )
    context, scores = attend_naively(q, k, v, mask)
    return back_to_features(layer, context), scores


def heads_by_role(layer, x):
    """What a layer projects x (batch, length, features) to, (batch, heads, length, size)."""
    kernels, biases = _role_weights(layer)
    return {role: _heads(x, kernels[role], biases[role]) for role in kernels}


def softmax_by_rows(scores, mask):
    """Probabilities of scores (batch, heads, target, source), 0 in rows where all is masked."""
    mask = np.broadcast_to(mask, scores.shape)
    probabilities = np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        allowed = np.flatnonzero(mask[row])
        if len(allowed):
            shares = np.exp(scores[row][allowed] - scores[row][allowed].max())
            probabilities[row][allowed] = shares / shares.sum()
    return probabilities


def back_to_features(layer, context):
    """Outputs from what heads have read, (batch, heads, target, value_dim)."""
    context = np.swapaxes(context, 1, 2)
    output = context.reshape(*context.shape[:2], -1) @ _array(layer.output_projection.kernel)
    return output + (_array(layer.output_projection.bias) if layer.use_bias else 0)


def of_own_values(layer, x):
    """What a layer makes of positions x (batch, length, features) that see themselves alone."""
    layer = getattr(layer, "attention", layer)  # where it is around another
    if not hasattr(layer, "output_projection"):
        return np.asarray(x, "float64")
    return back_to_features(layer, heads_by_role(layer, x)["value"])


def spread_weights(layer, seed=0):
    """Gives every trainable weight random numbers, so that biases and norms take part."""
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        centre = 1.0 if weight.path.endswith("gamma") else 0.0
        weight.assign(centre + rng.normal(size=weight.shape) * 0.4)
    return layer


def called(layer, *inputs):
    """A layer that was called once, with random weights (`spread_weights`)."""
    layer(*inputs)
    return spread_weights(layer)


def assert_steps(step, cache, x, expected, atol=5e-6):
    """Decodes the positions of `x` (batch, length, features) one by one, from index 0 on."""
    for index in range(x.shape[1]):
        output, cache = step(ops.convert_to_tensor(x[:, index : index + 1]), cache, index)
        assert_close(output[:, 0], expected[:, index], atol=atol)


def _role_weights(layer):
    kernels, biases = {}, {}
    for projection in layer.projections:
        start, kernel = 0, _array(projection.kernel)
        for role, (heads, size) in projection.heads.items():
            columns = slice(start, start + heads * size)
            kernels[role] = kernel[:, columns].reshape(-1, heads, size)
            bias = _array(projection.bias)[columns] if layer.use_bias else np.zeros(heads * size)
            biases[role] = bias.reshape(heads, size)
            start += heads * size
    return kernels, biases


def _heads(x, kernel, bias):
    return np.transpose(
        np.einsum("ble,ehd->blhd", np.asarray(x, "float64"), kernel) + bias, (0, 2, 1, 3)
    )


def _array(variable):
    return ops.convert_to_numpy(variable).astype("float64")

"""Recurrent encoder-decoders by loops over tokens, in float64, from the papers' equations."""

import numpy as np

from tests.harness import numpy


def array(variable):
    return numpy(variable).astype("float64")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    shares = np.exp(x - np.max(x))
    return shares / shares.sum()


def gru(cell, x, state):
    """Cho et al., 2014, with the reset after the product, as cuDNN has it."""
    (h,), units = state, cell.units
    (of_input, of_state) = array(cell.bias)
    xs = np.split(x @ array(cell.kernel) + of_input, 3)
    hs = np.split(h @ array(cell.recurrent_kernel) + of_state, 3)
    update, reset = sigmoid(xs[0] + hs[0]), sigmoid(xs[1] + hs[1])
    h = update * h + (1 - update) * np.tanh(xs[2] + reset * hs[2])
    assert h.shape == (units,)
    return h, [h]


def lstm(cell, x, state):
    h, c = state
    gates = x @ array(cell.kernel) + h @ array(cell.recurrent_kernel) + array(cell.bias)
    enter, forget, candidate, leave = np.split(gates, 4)
    c = sigmoid(forget) * c + sigmoid(enter) * np.tanh(candidate)
    h = sigmoid(leave) * np.tanh(c)
    return h, [h, c]


def read(step, cell, xs):
    """The outputs of a layer over a sequence from zeros, and its last state."""
    state = [np.zeros(cell.units)] * (2 if step is lstm else 1)
    outputs = []
    for x in xs:
        h, state = step(cell, x, state)
        outputs.append(h)
    return outputs, state


def read_both(step, layer, xs):
    """The two directions' outputs side by side, and their last states."""
    forward, end = read(step, layer.forward_layer.cell, xs)
    backward, start = read(step, layer.backward_layer.cell, xs[::-1])
    outputs = [np.concatenate(pair) for pair in zip(forward, backward[::-1], strict=True)]
    return outputs, [np.concatenate(pair) for pair in zip(end, start, strict=True)]


def additive_context(layer, query, source):
    """Bahdanau et al., 2014, appendix A.1.2."""
    w, u = array(layer.query_projection.kernel), array(layer.key_projection.kernel)
    v = array(layer.scale)[:, 0]
    shares = softmax([v @ np.tanh(query @ w + h @ u) for h in source])
    return sum(share * h for share, h in zip(shares, source, strict=True))


def general_context(layer, query, source):
    """Luong et al., 2015, equation 8."""
    w = array(layer.key_projection.kernel)
    shares = softmax([query @ (h @ w) for h in source])
    return sum(share * h for share, h in zip(shares, source, strict=True))


def embedded(embedding, ids):
    return array(embedding.embeddings)[ids] * embedding.hidden_dim**0.5

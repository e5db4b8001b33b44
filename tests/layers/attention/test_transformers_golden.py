"""The mechanisms compute what attention of `transformers` does with the same weights.

The file was made by make_transformers_golden.py with the versions that it names.
"""

import pathlib

import numpy as np
import pytest
from keras import ops

from keras_attn import layers
from keras_attn.ops.hash_rounds import hash_buckets
from tests.harness import numpy

FILE = pathlib.Path(__file__).parents[1] / "golden" / "transformers_attention.npz"
HEADS, KEY_DIM = 2, 3


def golden(case):
    with np.load(FILE) as file:
        return {k.removeprefix(f"{case}/"): file[k] for k in file if k.startswith(f"{case}/")}


def real(length, short=8):
    return np.arange(length)[None, :] < np.array([[short], [length]])


def padded(length):
    return {"query_mask": real(length), "value_mask": real(length)}


def kernel(arrays, *names):
    """Kernels of PyTorch's linear layers, turned round and side by side."""
    return np.concatenate([arrays[f"weights/{name}.weight"].T for name in names], axis=1)


def bias(arrays, *names):
    return np.concatenate([arrays[f"weights/{name}.bias"] for name in names])


def given(layer, arrays, projection, output, biases=None):
    """The layer, built for self-attention, with these weights; nothing else has any."""
    layer.build(arrays["x"].shape)
    (fused,) = layer.projections
    fused.set_weights([projection] if biases is None else [projection, biases[0]])
    layer.output_projection.set_weights([output] if biases is None else [output, biases[1]])
    return layer


def unscaled(projection, sizes=HEADS * KEY_DIM):
    """The projection for models that do not divide scores by the root of the size."""
    projection = projection.copy()
    projection[:, :sizes] *= KEY_DIM**0.5
    return projection


def check(outputs, arrays, rows):
    expected = arrays["outputs"]
    assert np.abs(expected[rows]).max() > 0.3
    np.testing.assert_allclose(numpy(outputs)[rows], expected[rows], rtol=1e-5, atol=1e-5)


def t5_bias(bidirectional):
    return layers.RelativePositionBias(HEADS, 8, 7, bidirectional)


@pytest.mark.parametrize("case", ["both-ways", "causal"])
def test_t5(case):
    arrays, is_causal = golden(f"t5/{case}"), case == "causal"
    layer = layers.MultiHeadAttention(
        HEADS, KEY_DIM, use_bias=False, relative_positions=t5_bias(not is_causal)
    )
    projection = unscaled(kernel(arrays, "q", "k", "v"))
    given(layer, arrays, projection, kernel(arrays, "o"))
    layer.relative_positions.embeddings.assign(arrays["weights/relative_attention_bias.weight"])
    outputs = layer(arrays["x"], arrays["x"], use_causal_mask=is_causal, **padded(11))
    check(outputs, arrays, real(11))


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("num_heads", [4, 6])
def test_bloom(num_heads, window):
    """ALiBi; also in a window as long as the sequence."""
    arrays = golden(f"bloom/{num_heads}")
    positions = layers.AlibiBias(num_heads)
    if window:
        layer = layers.LocalAttention(num_heads, KEY_DIM, 11, relative_positions=positions)
    else:
        layer = layers.MultiHeadAttention(num_heads, KEY_DIM, relative_positions=positions)

    def by_role(fused):  # from (heads, roles, size) to (roles, heads, size)
        parts = fused.reshape(*fused.shape[:-1], num_heads, 3, KEY_DIM)
        return np.swapaxes(parts, -3, -2).reshape(fused.shape)

    biases = by_role(bias(arrays, "query_key_value")), bias(arrays, "dense")
    projection = by_role(kernel(arrays, "query_key_value"))
    given(layer, arrays, projection, kernel(arrays, "dense"), biases)
    outputs = layer(arrays["x"], arrays["x"], use_causal_mask=True, **padded(11))
    check(outputs, arrays, real(11))


@pytest.mark.parametrize(("case", "factor"), [("default", 1.0), ("linear", 4.0)])
def test_llama(case, factor):
    """Rotary positions, plain and interpolated, with grouped queries."""
    arrays = golden(f"llama/{case}")
    layer = layers.MultiHeadAttention(
        4, 6, num_key_value_heads=2, relative_positions=layers.RotaryEmbedding(100.0, factor)
    )
    roles = ("q_proj", "k_proj", "v_proj")
    biases = bias(arrays, *roles), bias(arrays, "o_proj")
    given(layer, arrays, kernel(arrays, *roles), kernel(arrays, "o_proj"), biases)
    outputs = layer(arrays["x"], arrays["x"], use_causal_mask=True, **padded(11))
    check(outputs, arrays, real(11))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("case", ["both-ways", "causal"])
def test_xlnet(case, compressed):
    """Transformer-XL's scores over a segment and a memory, also where half of it is compressed."""
    arrays = golden(f"xlnet/{case}")
    states, exists = arrays["memory"], np.arange(4) >= np.array([[1], [0]])
    if compressed:
        layer = layers.CompressiveMemoryAttention(HEADS, KEY_DIM, 2, 2, use_bias=False)
        memory = (states[:, 2:], exists[:, 2:], states[:, :2], exists[:, :2])
    else:
        layer = layers.RecurrentMemoryAttention(HEADS, KEY_DIM, 4, use_bias=False)
        memory = (states, exists)
    flat = {role: arrays[f"weights/{role}"].reshape(6, 6) for role in "qkvor"}
    projection = np.concatenate([flat[role] for role in "qkv"], axis=1)
    given(layer, arrays, projection, flat["o"].T)
    positions = layer.relative_positions
    # Sines and cosines by turns here, the ones after the others there.
    positions.kernel.assign(flat["r"].reshape(2, 3, 6).swapaxes(0, 1).reshape(6, 6))
    positions.content_bias.assign(arrays["weights/r_w_bias"][:, None])
    positions.position_bias.assign(arrays["weights/r_r_bias"][:, None])
    memory = type(layer.initial_memory(2, 6))(*memory)
    outputs, _ = layer(arrays["x"], arrays["x"], memory=memory, use_causal_mask=case == "causal")
    check(outputs, arrays, np.ones((2, 5), bool))


def of_longformer(layer, number_of_globals):
    arrays = golden(f"longformer/{number_of_globals}")
    roles = ("query", "key", "value")
    biases = bias(arrays, *roles), np.zeros(6)
    given(layer, arrays, kernel(arrays, *roles), np.eye(6), biases)
    if number_of_globals:
        layer.label_keys.assign(np.zeros(layer.label_keys.shape))
    check(layer(arrays["x"], arrays["x"], **padded(24)), arrays, real(24))


def test_longformer():
    of_longformer(layers.LocalAttention(HEADS, KEY_DIM, sliding_window=5), 0)


def test_longformer_with_global_positions():
    of_longformer(layers.GlobalLocalAttention(HEADS, KEY_DIM, radius=4, global_length=2), 2)


def test_longformer_with_global_positions_of_their_own():
    arrays, roles = golden("longformer/globals"), ("query", "key", "value")
    layer = layers.LongformerAttention(HEADS, KEY_DIM, sliding_window=3, global_length=2)
    layer.build(arrays["x"].shape, arrays["x"].shape)
    for projections, end in ((layer.projections, ""), (layer.global_projections, "_global")):
        for projection in projections:
            names = [f"{role}{end}" for role in projection.heads]
            projection.set_weights([kernel(arrays, *names), bias(arrays, *names)])
    assert sum(len(projection.heads) for projection in layer.projections) == len(roles)
    layer.output_projection.set_weights([np.eye(6), np.zeros(6)])
    outputs = layer(arrays["x"], arrays["x"], global_mask=arrays["global_mask"], **padded(24))
    check(outputs, arrays, real(24))


@pytest.mark.parametrize("length", [30, 32])
def test_big_bird(length):
    arrays, roles = golden(f"big_bird/{length}"), ("query", "key", "value")
    layer = layers.BigBirdAttention(HEADS, KEY_DIM, 4, num_random_blocks=2, repeat_first=True)
    given(layer, arrays, kernel(arrays, *roles), np.eye(6), (bias(arrays, *roles), np.zeros(6)))
    rows = real(32, length)
    outputs = layer(arrays["x"], arrays["x"], query_mask=rows, value_mask=rows)
    check(outputs, arrays, rows)


def test_nystromformer():
    arrays, roles = golden("nystromformer"), ("query", "key", "value")
    layer = layers.NystromAttention(HEADS, KEY_DIM, num_landmarks=4, convolution_width=5)
    given(layer, arrays, kernel(arrays, *roles), np.eye(6), (bias(arrays, *roles), np.zeros(6)))
    layer.convolution.assign(arrays["weights/conv.weight"][:, 0, :, 0].T)
    check(layer(arrays["x"], arrays["x"]), arrays, np.ones((1, 12), bool))


def test_longt5():
    """A window with T5's biases."""
    arrays = golden("longt5")
    layer = layers.LocalAttention(
        HEADS, KEY_DIM, 4, use_bias=False, relative_positions=t5_bias(True)
    )
    given(layer, arrays, unscaled(kernel(arrays, "q", "k", "v")), kernel(arrays, "o"))
    layer.relative_positions.embeddings.assign(arrays["weights/relative_attention_bias.weight"])
    check(layer(arrays["x"], arrays["x"], **padded(11)), arrays, real(11))


@pytest.mark.parametrize(("case", "chunk_length"), [("whole", 12), ("causal", 12), ("chunks", 4)])
def test_reformer(case, chunk_length):
    """Where all is in one bucket. There the first chunk looks at the last one, as if before it."""
    arrays = golden(f"reformer/{case}")
    layer = layers.LSHAttention(
        HEADS, KEY_DIM, num_buckets=2, num_hashes=1, chunk_length=chunk_length, use_bias=False
    )
    given(layer, arrays, kernel(arrays, "query_key", "value"), np.eye(6))
    layer.rotations.assign(np.zeros(layer.rotations.shape))
    outputs = layer(arrays["x"], arrays["x"], use_causal_mask=case == "causal")
    rows = np.ones((2, 12), bool)
    rows[:, :4] = case != "chunks"
    check(outputs, arrays, rows)


def test_reformers_buckets():
    arrays = golden("reformer/buckets")
    found = hash_buckets(ops.convert_to_tensor(arrays["x"]), arrays["rotations"])
    np.testing.assert_array_equal(numpy(found), arrays["outputs"])

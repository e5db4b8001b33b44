"""The blocks compute what PyTorch's Transformer layers do with the same weights.

The files were made by make_torch_golden.py with the version of PyTorch that they name.
"""

import pathlib

import numpy as np
import pytest
from keras import ops

from keras_attn import layers

FOLDER = pathlib.Path(__file__).parent / "golden"
HEADS, FEATURES, INTERMEDIATE = 3, 15, 11
FEED_FORWARD = {
    "feed_forward/intermediate/kernel": "linear1.weight",
    "feed_forward/intermediate/bias": "linear1.bias",
    "feed_forward/output/kernel": "linear2.weight",
    "feed_forward/output/bias": "linear2.bias",
}


def golden(name, norm, activation):
    with np.load(FOLDER / f"torch_{name}.npz") as file:
        start = f"{norm}/{activation}/"
        return {key.removeprefix(start): file[key] for key in file if key.startswith(start)}


def attention_names(ours, theirs, parts):
    """Weights of an attention layer; `parts` names our kernels and their rows of PyTorch's."""
    names = {
        f"{ours}/output/kernel": f"{theirs}.out_proj.weight",
        f"{ours}/output/bias": f"{theirs}.out_proj.bias",
    }
    for part, rows in parts.items():
        names[f"{ours}/{part}/kernel"] = (f"{theirs}.in_proj_weight", rows)
        names[f"{ours}/{part}/bias"] = (f"{theirs}.in_proj_bias", rows)
    return names


def norm_names(*pairs):
    names = {}
    for ours, theirs in pairs:
        names[f"{ours}/norm/gamma"] = f"{theirs}.weight"
        names[f"{ours}/norm/beta"] = f"{theirs}.bias"
    return names


def assign(block, names, arrays):
    """Gives each of the block's weights PyTorch's values, kernels turned round."""
    for variable in block.weights:
        name = names.pop(variable.path.split("/", 1)[1])
        name, rows = name if isinstance(name, tuple) else (name, slice(None))
        variable.assign(arrays[f"weights/{name}"][rows].T)
    assert not names, f"without a weight of ours: {names}"


def parts_of(activation):
    attention = layers.MultiHeadAttention(HEADS, FEATURES // HEADS)
    return attention, layers.FeedForward(INTERMEDIATE, activation)


def assert_near(actual, expected, mask):
    """Compares what is no padding; there neither side promises anything."""
    actual = ops.convert_to_numpy(actual)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(actual[mask], expected[mask], rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post-norm", "pre-norm"])
def test_encoder_block(norm, activation):
    arrays = golden("encoder", norm, activation)
    attention, feed_forward = parts_of(activation)
    block = layers.TransformerEncoderBlock(
        attention, feed_forward, norm_first=norm == "pre-norm", epsilon=1e-5
    )
    block.build(arrays["source"].shape)
    names = attention_names("attention", "self_attn", {"query_key_value": slice(None)})
    names |= FEED_FORWARD
    names |= norm_names(("attention_residual", "norm1"), ("feed_forward_residual", "norm2"))
    assign(block, names, arrays)
    outputs = block(arrays["source"], padding_mask=arrays["source_mask"])
    assert_near(outputs, arrays["outputs"], arrays["source_mask"])


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post-norm", "pre-norm"])
def test_decoder_block(norm, activation):
    arrays = golden("decoder", norm, activation)
    attention, feed_forward = parts_of(activation)
    block = layers.TransformerDecoderBlock(
        attention,
        feed_forward,
        cross_attention=attention,
        norm_first=norm == "pre-norm",
        epsilon=1e-5,
    )
    block.build(arrays["target"].shape, arrays["source"].shape)
    names = attention_names("self_attention", "self_attn", {"query_key_value": slice(None)})
    names |= attention_names(
        "cross_attention",
        "multihead_attn",
        {"query": slice(FEATURES), "key_value": slice(FEATURES, None)},
    )
    names |= FEED_FORWARD
    names |= norm_names(
        ("self_attention_residual", "norm1"),
        ("cross_attention_residual", "norm2"),
        ("feed_forward_residual", "norm3"),
    )
    assign(block, names, arrays)
    outputs = block(
        arrays["target"],
        source=arrays["source"],
        padding_mask=arrays["target_mask"],
        source_padding_mask=arrays["source_mask"],
    )
    assert_near(outputs, arrays["outputs"], arrays["target_mask"])

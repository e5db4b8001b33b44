"""The blocks compute what PyTorch's Transformer layers do with the same weights.

The files were made by make_torch_golden.py with the version of PyTorch that they name.
"""

import pathlib

import numpy as np
import pytest

from keras_attn import layers
from tests.harness import numpy

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


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post-norm", "pre-norm"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_block(kind, norm, activation):
    arrays = golden(kind, norm, activation)
    attention = layers.MultiHeadAttention(HEADS, FEATURES // HEADS)
    parts = attention, layers.FeedForward(INTERMEDIATE, activation)
    options = {"norm_first": norm == "pre-norm", "epsilon": 1e-5}
    whole = {"query_key_value": slice(None)}
    source, mask = arrays["source"], arrays["source_mask"]
    if kind == "encoder":
        block = layers.TransformerEncoderBlock(*parts, **options)
        block.build(source.shape)
        names = attention_names("attention", "self_attn", whole)
        names |= norm_names(("attention_residual", "norm1"), ("feed_forward_residual", "norm2"))
        inputs = {"inputs": source}
    else:
        block = layers.TransformerDecoderBlock(*parts, cross_attention=attention, **options)
        block.build(arrays["target"].shape, source.shape)
        names = attention_names("self_attention", "self_attn", whole)
        rows = {"query": slice(FEATURES), "key_value": slice(FEATURES, None)}
        names |= attention_names("cross_attention", "multihead_attn", rows)
        residuals = "self_attention_residual", "cross_attention_residual", "feed_forward_residual"
        names |= norm_names(*zip(residuals, ("norm1", "norm2", "norm3"), strict=True))
        inputs = {"inputs": arrays["target"], "source": source, "source_padding_mask": mask}
        mask = arrays["target_mask"]
    assign(block, names | FEED_FORWARD, arrays)
    outputs, expected = numpy(block(**inputs, padding_mask=mask)), arrays["outputs"]
    assert np.abs(expected).max() > 0.5
    # What is no padding; there neither side promises anything.
    np.testing.assert_allclose(outputs[mask], expected[mask], rtol=0, atol=1e-5)

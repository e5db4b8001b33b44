"""Whole models compute what PyTorch's stacks do with the same weights.

The file was made by make_torch_golden.py with the version of PyTorch that it names.
"""

import pathlib

import numpy as np
import pytest
from keras import ops

from keras_attn.models import CausalTransformer, TransformerEncoder

FILE = pathlib.Path(__file__).parent / "golden" / "torch_stacks.npz"
TOKENS = np.array([[5, 7, 3, 9, 2, 4, 6], [4, 6, 2, 8, 10, 0, 0]], "int32")
BLOCK = {
    "output/kernel": "self_attn.out_proj.weight",
    "output/bias": "self_attn.out_proj.bias",
    "query_key_value/kernel": "self_attn.in_proj_weight",
    "query_key_value/bias": "self_attn.in_proj_bias",
    "feed_forward/intermediate/kernel": "linear1.weight",
    "feed_forward/intermediate/bias": "linear1.bias",
    "feed_forward/output/kernel": "linear2.weight",
    "feed_forward/output/bias": "linear2.bias",
    "attention_residual/norm/gamma": "norm1.weight",
    "attention_residual/norm/beta": "norm1.bias",
    "feed_forward_residual/norm/gamma": "norm2.weight",
    "feed_forward_residual/norm/beta": "norm2.bias",
}


def torch_name(path):
    """PyTorch's name of one of our weights."""
    layer, _, rest = path.partition("/")
    if layer == "embedding":
        return "embedding"
    if layer == "norm":
        return {"gamma": "norm.weight", "beta": "norm.bias"}[rest]
    index = layer.removeprefix("block_")
    name = max((name for name in BLOCK if rest.endswith(name)), key=len)
    return f"layers.{index}.{BLOCK[name]}"


@pytest.mark.parametrize("norm", ["post-norm", "pre-norm"])
@pytest.mark.parametrize("kind", [TransformerEncoder, CausalTransformer])
def test_a_whole_model(kind, norm):
    start = f"{'encoder' if kind is TransformerEncoder else 'causal'}/{norm}/"
    with np.load(FILE) as file:
        arrays = {key.removeprefix(start): file[key] for key in file if key.startswith(start)}
    model = kind(
        11,
        num_layers=2,
        hidden_dim=12,
        num_heads=3,
        intermediate_dim=17,
        dropout=0.0,
        norm_first=norm == "pre-norm",
    )
    expected = arrays.pop("outputs")
    for weight in model.weights:
        array = arrays.pop("weights/" + torch_name(weight.path))
        weight.assign(array.T if weight.path.endswith("kernel") else array)
    assert not arrays, f"without a weight of ours: {sorted(arrays)}"
    found = ops.convert_to_numpy(model({"token_ids": TOKENS}))
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(found[TOKENS != 0], expected[TOKENS != 0], rtol=0, atol=2e-5)

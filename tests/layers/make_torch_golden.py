"""Writes what PyTorch's Transformer layers compute, for tests/layers/test_torch_golden.py.

PyTorch is not needed for the tests, only to make their files again:

    pip install torch numpy && python tests/layers/make_torch_golden.py

Every parameter is drawn at random, biases and norms too, so that each has a part in the outputs.
"""

import itertools
import pathlib

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).parent / "golden"
HEADS, FEATURES, INTERMEDIATE = 3, 15, 11
BATCH, SOURCE, TARGET = 2, 7, 13


def make(kind, norm_first, activation, rng):
    """Runs one layer; returns its inputs, parameters and outputs by name."""
    layer = kind(
        FEATURES,
        HEADS,
        INTERMEDIATE,
        dropout=0.0,
        activation=activation,
        layer_norm_eps=1e-5,
        batch_first=True,
        norm_first=norm_first,
    )
    with torch.no_grad():
        for parameter in layer.parameters():
            values = rng.normal(scale=0.5, size=parameter.shape).astype("float32")
            parameter.copy_(torch.from_numpy(values))
    source = torch.from_numpy(rng.normal(size=(BATCH, SOURCE, FEATURES)).astype("float32"))
    source_padding = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    source_padding[1, -2:] = True  # True is padding here
    if kind is torch.nn.TransformerEncoderLayer:
        outputs = layer(source, src_key_padding_mask=source_padding)
        inputs = {"source": source}
    else:
        target = torch.from_numpy(rng.normal(size=(BATCH, TARGET, FEATURES)).astype("float32"))
        target_padding = torch.zeros(BATCH, TARGET, dtype=torch.bool)
        target_padding[0, -3:] = True
        causal = torch.ones(TARGET, TARGET, dtype=torch.bool).triu(1)
        outputs = layer(
            target,
            source,
            tgt_mask=causal,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
        )
        inputs = {"source": source, "target": target, "target_mask": ~target_padding}
    tensors = {"outputs": outputs, "source_mask": ~source_padding} | inputs
    tensors |= {f"weights/{name}": value for name, value in layer.named_parameters()}
    return {name: tensor.detach().numpy() for name, tensor in tensors.items()}


def main():
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(20)
    kinds = {
        "encoder": torch.nn.TransformerEncoderLayer,
        "decoder": torch.nn.TransformerDecoderLayer,
    }
    for name, kind in kinds.items():
        arrays = {}
        for norm_first, activation in itertools.product((False, True), ("relu", "gelu")):
            place = f"{'pre' if norm_first else 'post'}-norm/{activation}"
            made = make(kind, norm_first, activation, rng)
            arrays |= {f"{place}/{key}": array for key, array in made.items()}
        np.savez_compressed(FOLDER / f"torch_{name}.npz", torch=torch.__version__, **arrays)


if __name__ == "__main__":
    main()

"""Writes what PyTorch's Transformer stacks compute, for tests/models/test_torch_golden.py.

PyTorch is not needed for the tests, only to make their file again:

    pip install torch numpy && python tests/models/make_torch_golden.py

Every parameter is drawn at random. Embedded tokens are scaled and given sinusoids as in the paper.
"""

import math
import pathlib

import numpy as np
import torch

FILE = pathlib.Path(__file__).parent / "golden" / "torch_stacks.npz"
VOCABULARY, LAYERS, HEADS, FEATURES, INTERMEDIATE, LENGTH = 11, 2, 3, 12, 17, 7
TOKENS = [[5, 7, 3, 9, 2, 4, 6], [4, 6, 2, 8, 10, 0, 0]]


def sinusoids():
    positions = torch.zeros(LENGTH, FEATURES)
    for position in range(LENGTH):
        for pair in range(FEATURES // 2):
            angle = position / 10_000 ** (2 * pair / FEATURES)
            positions[position, 2 * pair] = math.sin(angle)
            positions[position, 2 * pair + 1] = math.cos(angle)
    return positions


def make(norm_first, causal, rng):
    """Runs one stack; returns its parameters and outputs by name."""
    layer = torch.nn.TransformerEncoderLayer(
        FEATURES,
        HEADS,
        INTERMEDIATE,
        dropout=0.0,
        activation="relu",
        layer_norm_eps=1e-6,
        batch_first=True,
        norm_first=norm_first,
    )
    norm = torch.nn.LayerNorm(FEATURES, eps=1e-6) if norm_first else None
    stack = torch.nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False)
    embedding = torch.nn.Embedding(VOCABULARY, FEATURES)
    parameters = dict(stack.named_parameters()) | {"embedding": embedding.weight}
    with torch.no_grad():
        for parameter in parameters.values():
            values = rng.normal(scale=0.5, size=parameter.shape).astype("float32")
            parameter.copy_(torch.from_numpy(values))
        tokens = torch.tensor(TOKENS)
        x = embedding(tokens) * math.sqrt(FEATURES) + sinusoids()
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1) if causal else None
        outputs = stack(x, mask=mask, src_key_padding_mask=tokens == 0)
        if causal:
            outputs = outputs @ embedding.weight.T
    arrays = {f"weights/{name}": parameter for name, parameter in parameters.items()}
    return {name: tensor.detach().numpy() for name, tensor in (arrays | {"": outputs}).items()}


def main():
    FILE.parent.mkdir(exist_ok=True)
    rng = np.random.default_rng(20)
    arrays = {}
    for kind in ("encoder", "causal"):
        for norm in ("post-norm", "pre-norm"):
            made = make(norm == "pre-norm", kind == "causal", rng)
            arrays |= {f"{kind}/{norm}/{name or 'outputs'}": array for name, array in made.items()}
    np.savez_compressed(FILE, torch=torch.__version__, **arrays)


if __name__ == "__main__":
    main()

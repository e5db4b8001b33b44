"""Writes what PyTorch computes of a small Vision Transformer, for test_patch_encoder.py.

PyTorch is not needed for the tests, only to make their file again:

    pip install torch numpy && python tests/models/make_vit_golden.py

Every parameter is drawn at random. Patches are a convolution whose stride is its kernel's size.
"""

import pathlib

import numpy as np
import torch

FILE = pathlib.Path(__file__).parent / "golden" / "torch_vit.npz"
LAYERS, HEADS, FEATURES, INTERMEDIATE = 2, 3, 12, 17
HEIGHT, WIDTH, CHANNELS, PATCH, CLASSES = 6, 10, 3, (3, 5), 5


def main():
    rng = np.random.default_rng(21)
    block = torch.nn.TransformerEncoderLayer(
        FEATURES,
        HEADS,
        INTERMEDIATE,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=1e-6,
        batch_first=True,
        norm_first=True,
    )
    norm = torch.nn.LayerNorm(FEATURES, eps=1e-6)
    stack = torch.nn.TransformerEncoder(block, LAYERS, norm, enable_nested_tensor=False)
    convolution = torch.nn.Conv2d(CHANNELS, FEATURES, PATCH, stride=PATCH)
    head = torch.nn.Linear(FEATURES, CLASSES)
    length = 1 + (HEIGHT // PATCH[0]) * (WIDTH // PATCH[1])
    class_token = torch.nn.Parameter(torch.zeros(1, 1, FEATURES))
    positions = torch.nn.Parameter(torch.zeros(1, length, FEATURES))
    parameters = dict(stack.named_parameters())
    parameters |= {f"patches.{name}": value for name, value in convolution.named_parameters()}
    parameters |= {f"head.{name}": value for name, value in head.named_parameters()}
    parameters |= {"class_token": class_token, "positions": positions}
    images = torch.from_numpy(rng.normal(size=(2, CHANNELS, HEIGHT, WIDTH)).astype("float32"))
    with torch.no_grad():
        for parameter in parameters.values():
            values = rng.normal(scale=0.5, size=parameter.shape).astype("float32")
            parameter.copy_(torch.from_numpy(values))
        x = convolution(images).flatten(2).transpose(1, 2)  # (batch, patches, features)
        x = torch.cat([class_token.expand(len(x), -1, -1), x], dim=1) + positions
        outputs = stack(x)
        logits = head(outputs[:, 0])
    arrays = {f"weights/{name}": value.detach().numpy() for name, value in parameters.items()}
    arrays |= {"images": images.permute(0, 2, 3, 1).numpy()}
    arrays |= {"outputs": outputs.numpy(), "logits": logits.numpy()}
    np.savez_compressed(FILE, torch=torch.__version__, **arrays)


if __name__ == "__main__":
    main()

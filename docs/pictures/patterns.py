"""Draws which positions see which, for each mechanism, from the weights of the layer itself."""

import sys
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import layers
from keras_attn.visualization import attention_maps

LENGTH = 32
MECHANISMS = {
    "dense": ("MultiHeadAttention", layers.MultiHeadAttention(1, 16), {}),
    "causal": (
        "MultiHeadAttention, causal",
        layers.MultiHeadAttention(1, 16),
        {"use_causal_mask": True},
    ),
    "window": ("LocalAttention, window 5", layers.LocalAttention(1, 16, 5), {}),
    "hashed": (
        "LSHAttention, 4 buckets",
        layers.LSHAttention(1, 16, num_buckets=4, chunk_length=4),
        {},
    ),
    "linear": ("LinearAttention", layers.LinearAttention(1, 16), {}),
    "synthesizer": ("DenseSynthesizer", layers.DenseSynthesizer(1, 16, max_length=LENGTH), {}),
    "additive": ("AdditiveAttention", layers.AdditiveAttention(16), {}),
    "alibi": (
        "MultiHeadAttention, ALiBi",
        layers.MultiHeadAttention(8, 4, relative_positions=layers.AlibiBias(8)),
        {},
    ),
}


def draw(folder: Path) -> None:
    """Writes one picture of all mechanisms."""
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).normal(size=(1, LENGTH, 16)).astype("float32")
    figure, axes = plt.subplots(2, 4, figsize=(12, 6.6))
    for axis, (title, layer, options) in zip(axes.flat, MECHANISMS.values(), strict=True):
        inputs = keras.Input((LENGTH, 16))
        model = keras.Model(inputs, layer(inputs, inputs, **options))
        weights = attention_maps(model, x)[0].weights[0, 0]
        axis.imshow(weights, cmap="Blues", vmin=0, vmax=np.quantile(weights, 0.995))
        axis.set(title=title, xticks=[], yticks=[])
    axes[0, 0].set(xlabel="position that is seen", ylabel="position that sees")
    figure.tight_layout()
    figure.savefig(folder / "attention_patterns.png", dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))

"""Draws which positions see which, for each mechanism.

A picture shows what the layer itself does: each of 32 random vectors is changed a little, and the
change of every output is measured. `python docs/pictures/patterns.py docs/pages/images`
"""

import sys
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from style import BLUE, LOOK

from keras_attn import layers

keras.utils.set_random_seed(3)  # before the layers are made: they draw their seeds then
LENGTH, FEATURES = 32, 16
CHANGE = 1e-2

DENSE = layers.MultiHeadAttention
CAUSAL = {"use_causal_mask": True}


def attention(layer, **options):
    """A mechanism of one sequence."""
    return lambda x: layer(x, x, **options)


def synthesizer(name, **options):
    """A synthesizer of sequences up to the length of the picture."""
    return attention(getattr(layers, name)(2, 8, max_length=LENGTH, **options))


PICTURES = {
    "dense": {
        "MultiHeadAttention": attention(DENSE(2, 8)),
        "causal": attention(DENSE(2, 8), **CAUSAL),
        "sliding_window=9": attention(DENSE(2, 8, sliding_window=9)),
        "padding from 24 on": attention(
            DENSE(2, 8), value_mask=np.arange(LENGTH)[None] < 24, query_mask=np.ones((1, LENGTH))
        ),
    },
    "local": {
        "LocalAttention": attention(layers.LocalAttention(2, 8, 5)),
        "causal": attention(layers.LocalAttention(2, 8, 5), **CAUSAL),
    },
    "global_local": {
        "GlobalLocalAttention": attention(
            layers.GlobalLocalAttention(2, 8, radius=4, global_length=3)
        ),
    },
    "lsh": {
        "LSHAttention": attention(layers.LSHAttention(2, 8, num_buckets=4, chunk_length=4, seed=1)),
        "causal": attention(
            layers.LSHAttention(2, 8, num_buckets=4, chunk_length=4, seed=1), **CAUSAL
        ),
    },
    "linear": {
        "LinearAttention": attention(layers.LinearAttention(2, 8)),
        "causal": attention(layers.LinearAttention(2, 8), **CAUSAL),
    },
    "longformer": {
        "LongformerAttention": attention(layers.LongformerAttention(2, 8, 4, global_length=2)),
        "dilation=3": attention(layers.LongformerAttention(2, 8, 4, global_length=2, dilation=3)),
    },
    "big_bird": {
        "BigBirdAttention": attention(
            layers.BigBirdAttention(2, 8, block_length=2, num_random_blocks=1, seed=2)
        ),
    },
    "sparse": {
        "SparseAttention": attention(layers.SparseAttention(2, 8, 6)),
        "causal": attention(layers.SparseAttention(2, 8, 6), **CAUSAL),
        'pattern="fixed"': attention(layers.SparseAttention(2, 8, 6, "fixed"), **CAUSAL),
    },
    "sinkhorn": {
        "SinkhornAttention": attention(
            layers.SinkhornAttention(2, 8, 4, max_length=LENGTH, temperature=0.1)
        ),
    },
    "linformer": {
        "LinformerAttention": attention(layers.LinformerAttention(2, 8, LENGTH, 4)),
    },
    "nystrom": {
        "NystromAttention": attention(layers.NystromAttention(2, 8, 4)),
        "convolution_width=5": attention(layers.NystromAttention(2, 8, 4, convolution_width=5)),
    },
    "performer": {
        "PerformerAttention": attention(layers.PerformerAttention(2, 8, 64, seed=1)),
        "causal": attention(layers.PerformerAttention(2, 8, 64, seed=1), **CAUSAL),
    },
    "gated_linear": {
        "GatedLinearAttention": attention(layers.GatedLinearAttention(2, 8, temperature=4.0)),
        "causal": attention(layers.GatedLinearAttention(2, 8, temperature=4.0), **CAUSAL),
    },
    "delta_rule": {
        "DeltaRuleAttention": attention(layers.DeltaRuleAttention(2, 8)),
        "causal": attention(layers.DeltaRuleAttention(2, 8), **CAUSAL),
    },
    "disentangled": {
        "DisentangledAttention": attention(layers.DisentangledAttention(2, 8, 8, 32)),
        "causal": attention(layers.DisentangledAttention(2, 8, 8, 32), **CAUSAL),
    },
    "memory": {
        "RecurrentMemoryAttention": attention(
            layers.SegmentRecurrence(layers.RecurrentMemoryAttention(2, 8, memory_length=8), 8),
            **CAUSAL,
        ),
        "CompressiveMemoryAttention": attention(
            layers.SegmentRecurrence(
                layers.CompressiveMemoryAttention(
                    2, 8, memory_length=8, compressed_length=4, compression_rate=2
                ),
                8,
            ),
            **CAUSAL,
        ),
    },
    "synthesizers": {
        "DenseSynthesizer": synthesizer("DenseSynthesizer"),
        "FactorizedDense…": synthesizer("FactorizedDenseSynthesizer"),
        "RandomSynthesizer": synthesizer("RandomSynthesizer"),
        "FactorizedRandom…": synthesizer("FactorizedRandomSynthesizer"),
        "SynthesizerMixture": synthesizer("SynthesizerMixture", members=("random", "dot_product")),
    },
    "content": {
        "SimpleSelfAttention": attention(layers.SimpleSelfAttention()),
        "AdditiveAttention": attention(layers.AdditiveAttention(16)),
        "LuongAttention": attention(layers.LuongAttention("general")),
    },
    "intra_attention": {
        "IntraAttentionCell": keras.layers.RNN(
            layers.IntraAttentionCell(16, max_length=12), return_sequences=True
        ),
    },
    "positions": {
        "RotaryEmbedding": attention(DENSE(2, 8, relative_positions=layers.RotaryEmbedding())),
        "AlibiBias": attention(DENSE(8, 2, relative_positions=layers.AlibiBias(8))),
        "TransformerXLPositions": attention(
            DENSE(2, 8, relative_positions=layers.TransformerXLPositions(2, 8))
        ),
    },
    "convolved": {
        "ConvolvedAttention": attention(layers.ConvolvedAttention(layers.LinearAttention(2, 8))),
        "causal": attention(layers.ConvolvedAttention(layers.DeltaRuleAttention(2, 8)), **CAUSAL),
    },
}


def seen(layer) -> np.ndarray:
    """How much each output (row) changes with each input (column), from 0 to 1."""
    inputs = keras.Input((LENGTH, FEATURES))
    model = keras.Model(inputs, layer(inputs))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, LENGTH, FEATURES))
    changed = np.repeat(x, LENGTH, axis=0)
    places = np.arange(LENGTH)
    changed[places, places] += CHANGE * rng.normal(size=(LENGTH, FEATURES))
    outputs = model.predict(np.concatenate([x, changed]), batch_size=LENGTH + 1, verbose=0)
    changes = np.linalg.norm(outputs[1:] - outputs[0], axis=-1).T
    changes[changes < 1e-6] = 0.0
    return np.clip(changes / np.quantile(changes[changes > 0], 0.95), 0, 1)


def show(axis, title: str, weights: np.ndarray) -> None:
    """Draws weights as shades of one color on any ground."""
    picture = np.empty((*weights.shape, 4))
    picture[..., :3] = to_rgb(BLUE)
    # What is seen at all is visible.
    picture[..., 3] = np.where(weights > 0, 0.12 + 0.88 * weights, 0.0)
    axis.imshow(picture, interpolation="nearest")
    axis.set_title(title, fontsize=10)
    axis.set(xticks=[], yticks=[])


def draw(folder: Path) -> None:
    """Writes a picture for each page, and one of the first mechanism of each."""
    first = {}
    for page, mechanisms in PICTURES.items():
        found = {title: seen(layer) for title, layer in mechanisms.items()}
        first |= dict(list(found.items())[:1])
        figure, axes = plt.subplots(1, len(found), figsize=(2.6 * len(found), 2.9), squeeze=False)
        for axis, (title, weights) in zip(axes.flat, found.items(), strict=True):
            show(axis, title, weights)
        axes[0, 0].set(xlabel="input", ylabel="output")
        figure.tight_layout()
        figure.savefig(folder / f"patterns_{page}.png")
        plt.close(figure)
    first = dict(list(first.items())[:16])
    figure, axes = plt.subplots(4, 4, figsize=(10.5, 11.2))
    for axis, (title, weights) in zip(axes.flat, first.items(), strict=True):
        show(axis, title, weights)
    axes[0, 0].set(xlabel="input", ylabel="output")
    figure.tight_layout()
    figure.savefig(folder / "attention_patterns.png")


if __name__ == "__main__":
    with plt.rc_context(LOOK):
        draw(Path(sys.argv[1]))

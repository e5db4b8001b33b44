"""How each public layer is made and called: at least one case a class, every argument varied."""

import numpy as np

from keras_attn import layers
from tests.harness import LayerCase, numbers


def ids(seed, vocabulary_size, *shape):
    """Token ids with padding (0) at the end of the last row."""
    array = np.random.default_rng(seed).integers(1, vocabulary_size, shape).astype("int32")
    array[-1, -2:] = 0
    return array


def mask(seed, *shape):
    """A mask that leaves every query at least its first key."""
    array = np.random.default_rng(seed).random(shape) < 0.6
    array[..., 0] = True
    return array


def padding(batch, length):
    """A padding mask with each row one position shorter than the one before."""
    return np.arange(length)[None, :] < length - np.arange(batch)[:, None]


def self_attention(**arguments):
    return lambda: layers.MultiHeadAttention(**({"num_heads": 2, "key_dim": 3} | arguments))


def feed_forward(**arguments):
    return lambda: layers.FeedForward(**({"intermediate_dim": 11} | arguments))


X = numbers(1, 2, 5, 7)  # (batch, target, features)
SOURCE = numbers(2, 2, 11, 13)  # (batch, source, features)

TOKEN_EMBEDDING = [
    LayerCase(
        layers.TokenEmbedding,
        {"vocabulary_size": 11, "hidden_dim": 7},
        {"inputs": ids(1, 11, 2, 5)},
        outputs=(2, 5, 7),
        trainable=1,
    ),
    LayerCase(
        layers.TokenEmbedding,
        {
            "vocabulary_size": 11,
            "hidden_dim": 7,
            "scale": False,
            "mask_zero": False,
            "embeddings_initializer": "random_uniform",
            "embeddings_regularizer": "l2",
        },
        {"inputs": ids(1, 11, 2, 5)},
        outputs=(2, 5, 7),
        trainable=1,
        note="plain",
    ),
    LayerCase(
        layers.TokenEmbedding,
        {"vocabulary_size": 11, "hidden_dim": 7, "predict_zero": False},
        {"inputs": X},
        options={"reverse": True},
        outputs=(2, 5, 11),
        trainable=1,
        note="reverse",
    ),
    LayerCase(layers.VocabularyBias, {}, {"inputs": X}, outputs=(2, 5, 7), trainable=1),
]

POSITIONS = [
    LayerCase(
        layers.SinusoidalPositionEncoding,
        {},
        {"inputs": X},
        outputs=(2, 5, 7),
        trainable=0,
    ),
    LayerCase(
        layers.SinusoidalPositionEncoding,
        {"interleaved": False},
        {"inputs": X, "start_index": np.array([3, 17], "int32")},
        outputs=(2, 5, 7),
        trainable=0,
        note="start",
    ),
    LayerCase(
        layers.LearnedPositionEmbedding,
        {
            "max_length": 5,
            "embeddings_initializer": "random_normal",
            "embeddings_regularizer": "l1",
        },
        {"inputs": X},
        outputs=(2, 5, 7),
        trainable=1,
    ),
    LayerCase(
        layers.LearnedPositionEmbedding,
        {"max_length": 23},
        {"inputs": X, "start_index": np.array([3, 17], "int32")},
        outputs=(2, 5, 7),
        trainable=1,
        note="start",
    ),
    LayerCase(
        layers.SegmentEmbedding,
        {
            "num_segments": 3,
            "embeddings_initializer": "random_normal",
            "embeddings_regularizer": "l1",
        },
        {"inputs": X, "segment_ids": np.array([[0, 0, 1, 2, 1], [1, 2, 2, 0, 0]], "int32")},
        outputs=(2, 5, 7),
        trainable=1,
    ),
    LayerCase(
        layers.RotaryEmbedding,
        {"max_wavelength": 100.0, "scaling_factor": 2.0},
        {"inputs": numbers(3, 2, 3, 5, 8)},
        outputs=(2, 3, 5, 8),
        trainable=0,
    ),
    LayerCase(
        layers.RotaryEmbedding,
        {},
        {"inputs": numbers(3, 2, 3, 5, 8), "positions": np.array([[3], [17]], "int32")},
        outputs=(2, 3, 5, 8),
        trainable=0,
        note="positions",
    ),
    LayerCase(
        layers.AlibiBias,
        {"num_heads": 3},
        {"query_positions": np.arange(10, dtype="int32").reshape(2, 5)},
        outputs=(2, 3, 5, 5),
        trainable=0,
    ),
    LayerCase(
        layers.TransformerXLPositions,
        {
            "num_heads": 3,
            "key_dim": 8,
            "max_wavelength": 100.0,
            "kernel_initializer": "he_normal",
            "bias_initializer": "random_normal",
        },
        {"query": numbers(3, 2, 3, 5, 8), "key": numbers(4, 2, 3, 7, 8)},
        outputs=(2, 3, 5, 7),
        trainable=3,
    ),
    LayerCase(
        layers.RelativePositionBias,
        {
            "num_heads": 3,
            "num_buckets": 8,
            "max_distance": 11,
            "bidirectional": False,
            "embeddings_initializer": "ones",
        },
        {
            "query_positions": np.arange(10, dtype="int32").reshape(2, 5),
            "key_positions": np.arange(14, dtype="int32").reshape(2, 7),
        },
        outputs=(2, 3, 5, 7),
        trainable=1,
    ),
]

IMAGES = numbers(6, 2, 6, 10, 3)  # (batch, height, width, channels)

FRONT_ENDS = [
    LayerCase(
        layers.PatchEmbedding,
        {"patch_size": 2, "hidden_dim": 7},
        {"inputs": IMAGES},
        outputs=(2, 15, 7),
        trainable=2,
    ),
    LayerCase(
        layers.PatchEmbedding,
        {
            "patch_size": (3, 5),
            "hidden_dim": 7,
            "use_bias": False,
            "kernel_initializer": "he_normal",
            "kernel_regularizer": "l2",
        },
        {"inputs": IMAGES},
        outputs=(2, 4, 7),
        trainable=1,
        note="oblong",
    ),
    LayerCase(
        layers.RandomShift,
        {"most": 2, "seed": 7},
        {"inputs": IMAGES},
        outputs=(2, 6, 10, 3),
        trainable=0,
        non_trainable=1,
    ),
    LayerCase(
        layers.ClassToken,
        {"initializer": "random_normal"},
        {"inputs": X},
        outputs=(2, 6, 7),
        trainable=1,
    ),
    LayerCase(
        layers.ConvolutionalSubsampling,
        {"hidden_dim": 7},
        {"inputs": SOURCE, "mask": padding(2, 11)},
        outputs=(2, 3, 7),
        trainable=4,
    ),
    LayerCase(
        layers.ConvolutionalSubsampling,
        {
            "hidden_dim": 7,
            "kernel_size": 5,
            "strides": (1, 3, 2),
            "activation": "relu",
            "kernel_initializer": "he_normal",
        },
        {"inputs": SOURCE},
        outputs=(2, 2, 7),
        trainable=6,
        note="deep",
    ),
]

ATTENTION = [
    LayerCase(
        layers.MultiHeadAttention,
        {"num_heads": 2, "key_dim": 3, "dropout": 0.2, "seed": 7},
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=6,
        non_trainable=1,
    ),
    LayerCase(
        layers.MultiHeadAttention,
        {
            "num_heads": 6,
            "key_dim": 3,
            "value_dim": 5,
            "num_key_value_heads": 2,
            "use_bias": False,
            "use_gate": True,
            "output_shape": 17,
            "attention_axes": 1,
            "kernel_initializer": "he_normal",
            "output_initializer": "orthogonal",
            "kernel_regularizer": "l2",
            "activity_regularizer": "l1",
        },
        {"query": X, "value": SOURCE, "attention_mask": mask(3, 2, 5, 11)},
        options={"return_attention_scores": True},
        outputs=((2, 5, 17), (2, 6, 5, 11)),
        trainable=3,
        note="cross",
    ),
    LayerCase(
        layers.MultiHeadAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "sliding_window": 3,
            "flash_attention": True,
            "bias_initializer": "ones",
            "bias_regularizer": "l2",
            "bias_constraint": "max_norm",
            "kernel_constraint": "max_norm",
        },
        {
            "query": X,
            "value": X,
            "key": numbers(5, 2, 5, 3),
            "query_mask": padding(2, 5),
            "value_mask": padding(2, 5),
            "key_mask": padding(2, 5)[::-1],
        },
        options={"use_causal_mask": True},
        outputs=(2, 5, 7),
        trainable=8,
        still=("key/bias",),
        note="chunked",
    ),
    LayerCase(
        layers.MultiHeadAttention,
        {
            "num_heads": 2,
            "key_dim": 6,
            "relative_positions": lambda: layers.RotaryEmbedding(50.0),
        },
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=6,
        note="rotary",
    ),
    LayerCase(
        layers.MultiHeadAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "relative_positions": lambda: layers.RelativePositionBias(2),
        },
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=7,
        note="relative",
    ),
]

SCORED_ATTENTION = [
    LayerCase(
        layers.SimpleSelfAttention,
        {"use_scale": True, "dropout": 0.2, "seed": 7},
        {"query": X, "value": X, "attention_mask": mask(3, 2, 5, 5)},
        options={"return_attention_scores": True},
        outputs=((2, 5, 7), (2, 5, 5)),
        trainable=0,
        non_trainable=1,
    ),
    LayerCase(
        layers.AdditiveAttention,
        {"units": 3, "kernel_initializer": "he_normal", "dropout": 0.2, "seed": 7},
        {"query": X, "value": SOURCE, "attention_mask": mask(3, 2, 5, 11)},
        options={"return_attention_scores": True},
        outputs=((2, 5, 13), (2, 5, 11)),
        trainable=3,
        non_trainable=1,
    ),
    LayerCase(
        layers.LuongAttention,
        {"score": "general", "kernel_initializer": "he_normal", "dropout": 0.2, "seed": 7},
        {"query": X, "value": SOURCE, "value_mask": padding(2, 11)},
        outputs=(2, 5, 13),
        trainable=1,
        non_trainable=1,
        note="general",
    ),
    LayerCase(
        layers.LuongAttention,
        {"score": "concat", "units": 3},
        {"query": X, "value": SOURCE, "key": numbers(5, 2, 11, 3)},
        outputs=(2, 5, 13),
        trainable=3,
        note="concat",
    ),
    LayerCase(
        layers.LuongAttention,
        {},
        {"query": X, "value": X, "query_mask": padding(2, 5)},
        outputs=(2, 5, 7),
        trainable=0,
    ),
]

SYNTHESIZERS = [
    LayerCase(
        layers.DenseSynthesizer,
        {"num_heads": 2, "key_dim": 3, "max_length": 7, "dropout": 0.2, "seed": 7, "value_dim": 5},
        {"query": X, "value": X, "attention_mask": mask(3, 2, 5, 5)},
        options={"return_attention_scores": True},
        outputs=((2, 5, 7), (2, 2, 5, 5)),
        trainable=8,
        non_trainable=1,
    ),
    LayerCase(
        layers.FactorizedDenseSynthesizer,
        {
            "num_heads": 2,
            "key_dim": 3,
            "max_length": 8,
            "factor": 4,
            "dropout": 0.2,
            "seed": 7,
            "use_bias": False,
            "kernel_initializer": "he_normal",
        },
        {"query": X, "value": X, "value_mask": padding(2, 5)},
        outputs=(2, 5, 7),
        trainable=5,
        non_trainable=1,
    ),
    LayerCase(
        layers.RandomSynthesizer,
        {
            "num_heads": 2,
            "key_dim": 3,
            "max_length": 7,
            "trainable_scores": False,
            "scores_initializer": "random_normal",
            "dropout": 0.2,
            "seed": 7,
        },
        {"query": X, "value": X},
        options={"return_attention_scores": True},
        outputs=((2, 5, 7), (2, 2, 5, 5)),
        trainable=4,
        non_trainable=2,
        note="fixed",
    ),
    LayerCase(
        layers.RandomSynthesizer,
        {"num_heads": 2, "key_dim": 3, "max_length": 7},
        {"query": X, "value": X},
        options={"use_causal_mask": True},
        outputs=(2, 5, 7),
        trainable=5,
    ),
    LayerCase(
        layers.FactorizedRandomSynthesizer,
        {
            "num_heads": 2,
            "key_dim": 3,
            "max_length": 7,
            "rank": 4,
            "scores_initializer": "random_normal",
            "dropout": 0.2,
            "seed": 7,
        },
        {"query": X, "value": X, "query_mask": padding(2, 5)},
        outputs=(2, 5, 7),
        trainable=6,
        non_trainable=1,
    ),
    LayerCase(
        layers.SynthesizerMixture,
        {
            "num_heads": 2,
            "key_dim": 3,
            "max_length": 8,
            "members": ("dense", "factorized_dense", "fixed_random", "factorized_random"),
            "scores_initializer": "random_normal",
            "dropout": 0.2,
            "seed": 7,
        },
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=17,
        non_trainable=2,
    ),
    LayerCase(
        layers.SynthesizerMixture,
        {"num_heads": 2, "key_dim": 3, "max_length": 8},
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=8,
        note="dot product",
    ),
]

LINEAR_ATTENTION = [
    LayerCase(
        layers.LinearAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "value_dim": 5,
            "use_bias": False,
            "output_shape": 17,
            "kernel_initializer": "he_normal",
            "output_initializer": "orthogonal",
            "kernel_regularizer": "l2",
            "kernel_constraint": "max_norm",
            "activity_regularizer": "l1",
        },
        {"query": X, "value": SOURCE, "attention_mask": mask(3, 2, 2, 1, 11)},
        outputs=(2, 5, 17),
        trainable=3,
        note="cross",
    ),
    LayerCase(
        layers.LinearAttention,
        {
            "num_heads": 2,
            "key_dim": 4,
            "relative_positions": lambda: layers.RotaryEmbedding(),
            "bias_initializer": "ones",
            "bias_regularizer": "l2",
            "bias_constraint": "max_norm",
        },
        {
            "query": X,
            "value": X,
            "key": numbers(5, 2, 5, 3),
            "query_mask": padding(2, 5),
            "value_mask": padding(2, 5),
            "key_mask": padding(2, 5)[::-1],
        },
        options={"use_causal_mask": True},
        outputs=(2, 5, 7),
        trainable=8,
        note="causal",
    ),
]

LSH_ATTENTION = [
    LayerCase(
        layers.LSHAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "num_buckets": 4,
            "num_hashes": 2,
            "chunk_length": 2,
            "dropout": 0.2,
            "seed": 7,
            "value_dim": 5,
        },
        {"query": X, "value": X, "value_mask": padding(2, 5)},
        outputs=(2, 5, 7),
        trainable=6,
        non_trainable=2,
    ),
]

MEMORY = [
    LayerCase(
        layers.RecurrentMemoryAttention,
        {
            "num_heads": 2,
            "key_dim": 4,
            "memory_length": 3,
            "relative_positions": lambda: layers.RotaryEmbedding(),
            "dropout": 0.2,
        },
        {"query": X, "value": X},
        options={"use_causal_mask": True},
        outputs=(2, 5, 7),
        trainable=6,
        non_trainable=1,
    ),
    LayerCase(
        layers.CompressiveMemoryAttention,
        {
            "num_heads": 2,
            "key_dim": 4,
            "memory_length": 3,
            "compressed_length": 2,
            "compression_rate": 2,
            "compression": "mean",
            "relative_positions": lambda: layers.AlibiBias(2),
        },
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=6,
    ),
    LayerCase(
        layers.SegmentRecurrence,
        {
            "attention": lambda: layers.CompressiveMemoryAttention(2, 4, 3, 2, 2, dropout=0.3),
            "segment_length": 3,
        },
        {"query": X, "value": X},
        outputs=(2, 5, 7),
        trainable=9,
        non_trainable=1,
    ),
]

LOCAL_ATTENTION = [
    LayerCase(
        layers.GlobalLocalAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "radius": 1,
            "global_length": 2,
            "max_distance": 2,
            "num_labels": 6,
            "share_projections": False,
            "dropout": 0.1,
            "seed": 4,
        },
        {
            "query": X,
            "value": X,
            "query_mask": padding(2, 5),
            "global_query": numbers(3, 2, 3, 7),
            "global_query_mask": padding(2, 3),
        },
        outputs=((2, 5, 7), (2, 3, 7)),
        trainable=11,
        non_trainable=1,
    ),
    LayerCase(
        layers.LocalAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "sliding_window": 3,
            "value_dim": 5,
            "dropout": 0.2,
            "seed": 7,
            "use_bias": False,
            "output_shape": 17,
            "kernel_initializer": "he_normal",
            "kernel_regularizer": "l2",
            "kernel_constraint": "max_norm",
            "activity_regularizer": "l1",
            "relative_positions": lambda: layers.AlibiBias(2),
        },
        {"query": X, "value": X, "attention_mask": mask(3, 2, 2, 1, 5)},
        outputs=(2, 5, 17),
        trainable=3,
        non_trainable=1,
    ),
    LayerCase(
        layers.LocalAttention,
        {
            "num_heads": 2,
            "key_dim": 3,
            "sliding_window": 2,
            "bias_initializer": "ones",
            "bias_regularizer": "l2",
            "bias_constraint": "max_norm",
        },
        {
            "query": X,
            "value": X,
            "key": numbers(5, 2, 5, 3),
            "query_mask": padding(2, 5),
            "value_mask": padding(2, 5),
            "key_mask": padding(2, 5)[::-1],
        },
        options={"use_causal_mask": True},
        outputs=(2, 5, 7),
        trainable=8,
        still=("key/bias",),
        note="causal",
    ),
]

FEED_FORWARD = [
    LayerCase(
        layers.FeedForward,
        {"intermediate_dim": 11},
        {"inputs": X},
        outputs=(2, 5, 7),
        trainable=4,
    ),
    LayerCase(
        layers.FeedForward,
        {
            "intermediate_dim": 11,
            "activation": "silu",
            "gated": True,
            "dropout": 0.2,
            "use_bias": False,
            "kernel_initializer": "he_uniform",
            "bias_initializer": "ones",
            "seed": 3,
            "output_initializer": "orthogonal",
        },
        {"inputs": X},
        outputs=(2, 5, 7),
        trainable=3,
        non_trainable=1,
        note="gated",
    ),
]

NORMS = [
    LayerCase(
        layers.RMSNormalization, {"epsilon": 1e-3}, {"inputs": X}, outputs=(2, 5, 7), trainable=1
    ),
]

BLOCKS = [
    LayerCase(
        layers.TransformerEncoderBlock,
        {
            "attention": self_attention(),
            "feed_forward": feed_forward(),
            "norm": lambda: layers.RMSNormalization(1e-3),
        },
        {"inputs": X, "padding_mask": padding(2, 5)},
        outputs=(2, 5, 7),
        trainable=10,
    ),
    LayerCase(
        layers.TransformerEncoderBlock,
        {
            "attention": self_attention(dropout=0.1),
            "feed_forward": feed_forward(dropout=0.1),
            "dropout": 0.1,
            "norm_first": True,
            "epsilon": 1e-3,
            "seed": 5,
            "recompute": True,
        },
        {"inputs": X, "attention_mask": mask(1, 2, 5, 5)},
        options={"use_causal_mask": True},
        outputs=(2, 5, 7),
        trainable=12,
        non_trainable=4,
        note="pre-norm",
    ),
    LayerCase(
        layers.TransformerDecoderBlock,
        {
            "self_attention": self_attention(),
            "cross_attention": self_attention(num_heads=3, key_dim=2),
            "feed_forward": feed_forward(),
            "norm": lambda: layers.RMSNormalization(1e-3),
        },
        {
            "inputs": X,
            "source": SOURCE,
            "padding_mask": padding(2, 5),
            "source_padding_mask": padding(2, 11),
        },
        outputs=(2, 5, 7),
        trainable=17,
    ),
    LayerCase(
        layers.TransformerDecoderBlock,
        {
            "self_attention": self_attention(),
            "feed_forward": feed_forward(gated=True),
            "dropout": 0.1,
            "norm_first": True,
            "epsilon": 1e-3,
            "seed": 5,
            "recompute": True,
        },
        {"inputs": X, "attention_mask": mask(1, 2, 1, 5, 5)},
        outputs=(2, 5, 7),
        trainable=14,
        non_trainable=2,
        note="decoder-only",
    ),
]

REVERSIBLE = [
    LayerCase(
        layers.GlobalLocalEncoderBlock,
        {
            "attention": lambda: layers.GlobalLocalAttention(2, 3, 1, max_distance=2, dropout=0.1),
            "feed_forward": feed_forward(dropout=0.1),
            "dropout": 0.1,
            "norm_first": True,
            "epsilon": 1e-3,
            "seed": 5,
        },
        {
            "inputs": X,
            "global_inputs": numbers(3, 2, 3, 7),
            "padding_mask": padding(2, 5),
            "global_padding_mask": padding(2, 3),
        },
        outputs=((2, 5, 7), (2, 3, 7)),
        trainable=13,
        non_trainable=4,
    ),
    LayerCase(
        layers.ReversibleBlock,
        {
            "attention": self_attention(dropout=0.1),
            "feed_forward": feed_forward(dropout=0.1),
            "dropout": 0.1,
            "epsilon": 1e-3,
            "seed": 5,
        },
        {"first": X, "second": numbers(3, 2, 5, 7), "padding_mask": padding(2, 5)},
        outputs=((2, 5, 7), (2, 5, 7)),
        trainable=12,
        non_trainable=4,
    ),
    LayerCase(
        layers.ReversibleStack,
        {
            "blocks": lambda: [
                layers.ReversibleBlock(self_attention()(), feed_forward()(), name=f"block_{i}")
                for i in range(2)
            ]
        },
        {"first": X, "second": numbers(3, 2, 5, 7), "attention_mask": mask(1, 2, 5, 5)},
        options={"use_causal_mask": True},
        outputs=((2, 5, 7), (2, 5, 7)),
        trainable=24,
    ),
]

POOLING = [
    LayerCase(
        layers.SequencePooling,
        {},
        {"inputs": X, "mask": padding(2, 5)},
        outputs=(2, 7),
        trainable=0,
    ),
    LayerCase(
        layers.SequencePooling,
        {"pooling": "max"},
        {"inputs": X, "mask": padding(2, 5)},
        outputs=(2, 7),
        trainable=0,
        note="max",
    ),
    LayerCase(
        layers.SequencePooling,
        {"pooling": "first"},
        {"inputs": X},
        outputs=(2, 7),
        trainable=0,
        note="first",
    ),
]

CASES = [
    *FRONT_ENDS,
    *TOKEN_EMBEDDING,
    *POSITIONS,
    *ATTENTION,
    *SCORED_ATTENTION,
    *SYNTHESIZERS,
    *LINEAR_ATTENTION,
    *LSH_ATTENTION,
    *LOCAL_ATTENTION,
    *MEMORY,
    *FEED_FORWARD,
    *NORMS,
    *BLOCKS,
    *REVERSIBLE,
    *POOLING,
]

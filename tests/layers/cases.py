"""How each public layer is made and called: at least one case a class, every argument varied."""

import keras
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


def rotary(*arguments):
    return lambda: layers.RotaryEmbedding(*arguments)


def alibi():
    return lambda: layers.AlibiBias(2)


def rms_norm():
    return lambda: layers.RMSNormalization(1e-3)


def case(layer, arguments, inputs, weights, outputs=(2, 5, 7), **further):
    """A case by its number of trainable weights, or that and the number of others."""
    counts = weights if isinstance(weights, tuple) else (weights,)
    return LayerCase(layer, arguments, inputs, outputs, *counts, **further)


X = numbers(1, 2, 5, 7)  # (batch, target, features)
SOURCE = numbers(2, 2, 11, 13)  # (batch, source, features)
GLOBALS = numbers(3, 2, 3, 7)  # (batch, globals, features)
IMAGES = numbers(6, 2, 6, 10, 3)  # (batch, height, width, channels)
ROTATED = numbers(3, 2, 3, 5, 8)  # (batch, heads, length, key_dim)
STARTS = np.array([3, 17], "int32")
POSITIONS = np.arange(10, dtype="int32").reshape(2, 5)

# === Inputs ===
SELF = {"query": X, "value": X}
PADDED = SELF | {"value_mask": padding(2, 5)}
CROSS = {"query": X, "value": SOURCE}
MASKED_PAIRS = SELF | {"attention_mask": mask(3, 2, 5, 5)}
MASKED_CROSS = CROSS | {"attention_mask": mask(3, 2, 5, 11)}
WITH_KEY = PADDED | {
    "key": numbers(5, 2, 5, 3),
    "query_mask": padding(2, 5),
    "key_mask": padding(2, 5)[::-1],
}
ON_X, ON_IMAGES, ON_HEADS = {"inputs": X}, {"inputs": IMAGES}, {"inputs": ROTATED}
ON_IDS, ON_PADDED = {"inputs": ids(1, 11, 2, 5)}, {"inputs": X, "mask": padding(2, 5)}
FROM_STARTS = {"inputs": X, "start_index": STARTS}
STREAMS = {"first": X, "second": numbers(3, 2, 5, 7)}

# === Options of the call ===
CAUSAL = {"use_causal_mask": True}
SCORES = {"return_attention_scores": True}

# === Arguments ===
HEADS, HEADS_OF_4 = {"num_heads": 2, "key_dim": 3}, {"num_heads": 2, "key_dim": 4}
DROPOUT = {"dropout": 0.2, "seed": 7}
DRAWN = {"scores_initializer": "random_normal"}
EMBEDDING = {"vocabulary_size": 11, "hidden_dim": 7}
INITIALIZED = {"embeddings_initializer": "random_normal", "embeddings_regularizer": "l1"}
PRE_NORM = {"dropout": 0.1, "norm_first": True, "epsilon": 1e-3, "seed": 5}
PROJECTIONS = {
    "use_bias": False,
    "output_shape": 17,
    "kernel_initializer": "he_normal",
    "output_initializer": "orthogonal",
    "kernel_regularizer": "l2",
    "kernel_constraint": "max_norm",
    "activity_regularizer": "l1",
}
BIASES = {"bias_initializer": "ones", "bias_regularizer": "l2", "bias_constraint": "max_norm"}

CASES = [
    # === Front ends ===
    case(
        layers.PatchEmbedding, {"patch_size": 2, "hidden_dim": 7}, ON_IMAGES, 2, outputs=(2, 15, 7)
    ),
    case(
        layers.PatchEmbedding,
        {
            "patch_size": (3, 5),
            "hidden_dim": 7,
            "use_bias": False,
            "kernel_initializer": "he_normal",
            "kernel_regularizer": "l2",
        },
        ON_IMAGES,
        1,
        outputs=(2, 4, 7),
        note="oblong",
    ),
    case(layers.RandomShift, {"most": 2, "seed": 7}, ON_IMAGES, (0, 1), outputs=(2, 6, 10, 3)),
    case(layers.ClassToken, {"initializer": "random_normal"}, ON_X, 1, outputs=(2, 6, 7)),
    case(
        layers.ConvolutionalSubsampling,
        {"hidden_dim": 7},
        {"inputs": SOURCE, "mask": padding(2, 11)},
        4,
        outputs=(2, 3, 7),
    ),
    case(
        layers.ConvolutionalSubsampling,
        {
            "hidden_dim": 7,
            "kernel_size": 5,
            "strides": (1, 3, 2),
            "activation": "relu",
            "kernel_initializer": "he_normal",
        },
        {"inputs": SOURCE},
        6,
        outputs=(2, 2, 7),
        note="deep",
    ),
    # === Tokens ===
    case(layers.TokenEmbedding, EMBEDDING, ON_IDS, 1),
    case(
        layers.TokenEmbedding,
        EMBEDDING
        | {
            "scale": False,
            "mask_zero": False,
            "embeddings_initializer": "random_uniform",
            "embeddings_regularizer": "l2",
        },
        ON_IDS,
        1,
        note="plain",
    ),
    case(
        layers.TokenEmbedding,
        EMBEDDING | {"predict_zero": False},
        ON_X,
        1,
        outputs=(2, 5, 11),
        options={"reverse": True},
        note="reverse",
    ),
    case(layers.VocabularyBias, {}, ON_X, 1),
    # === Positions ===
    case(layers.SinusoidalPositionEncoding, {}, ON_X, 0),
    case(layers.SinusoidalPositionEncoding, {"interleaved": False}, FROM_STARTS, 0, note="start"),
    case(layers.LearnedPositionEmbedding, INITIALIZED | {"max_length": 5}, ON_X, 1),
    case(layers.LearnedPositionEmbedding, {"max_length": 23}, FROM_STARTS, 1, note="start"),
    case(
        layers.LearnedPositionEmbedding,
        {"max_length": 5, "skip_padding": True},
        ON_PADDED,
        1,
        note="over real tokens",
    ),
    case(
        layers.SegmentEmbedding,
        INITIALIZED | {"num_segments": 3},
        {"inputs": X, "segment_ids": np.array([[0, 0, 1, 2, 1], [1, 2, 2, 0, 0]], "int32")},
        1,
    ),
    case(
        layers.RotaryEmbedding,
        {"max_wavelength": 100.0, "scaling_factor": 2.0},
        ON_HEADS,
        0,
        outputs=(2, 3, 5, 8),
    ),
    case(
        layers.RotaryEmbedding,
        {},
        {"inputs": ROTATED, "positions": np.array([[3], [17]], "int32")},
        0,
        outputs=(2, 3, 5, 8),
        note="positions",
    ),
    case(
        layers.AlibiBias, {"num_heads": 3}, {"query_positions": POSITIONS}, 0, outputs=(2, 3, 5, 5)
    ),
    case(
        layers.TransformerXLPositions,
        {
            "num_heads": 3,
            "key_dim": 8,
            "max_wavelength": 100.0,
            "kernel_initializer": "he_normal",
            "bias_initializer": "random_normal",
        },
        {"query": ROTATED, "key": numbers(4, 2, 3, 7, 8)},
        3,
        outputs=(2, 3, 5, 7),
    ),
    case(
        layers.RelativePositionBias,
        {
            "num_heads": 3,
            "num_buckets": 8,
            "max_distance": 11,
            "bidirectional": False,
            "embeddings_initializer": "ones",
        },
        {"query_positions": POSITIONS, "key_positions": np.arange(14, dtype="int32").reshape(2, 7)},
        1,
        outputs=(2, 3, 5, 7),
    ),
    # === Multi-head attention ===
    case(layers.MultiHeadAttention, HEADS | DROPOUT, SELF, (6, 1)),
    case(
        layers.MultiHeadAttention,
        PROJECTIONS
        | {
            "num_heads": 6,
            "key_dim": 3,
            "value_dim": 5,
            "num_key_value_heads": 2,
            "use_gate": True,
            "attention_axes": 1,
        },
        MASKED_CROSS,
        3,
        outputs=((2, 5, 17), (2, 6, 5, 11)),
        options=SCORES,
        note="cross",
    ),
    case(
        layers.MultiHeadAttention,
        HEADS
        | BIASES
        | {"sliding_window": 3, "flash_attention": True, "kernel_constraint": "max_norm"},
        WITH_KEY,
        8,
        options=CAUSAL,
        still=("key/bias",),
        note="chunked",
    ),
    case(
        layers.MultiHeadAttention,
        {"num_heads": 2, "key_dim": 6, "relative_positions": rotary(50.0)},
        SELF,
        6,
        note="rotary",
    ),
    case(
        layers.MultiHeadAttention,
        HEADS | {"relative_positions": lambda: layers.RelativePositionBias(2)},
        SELF,
        7,
        note="relative",
    ),
    # === One head ===
    case(
        layers.SimpleSelfAttention,
        DROPOUT | {"use_scale": True},
        MASKED_PAIRS,
        (0, 1),
        outputs=((2, 5, 7), (2, 5, 5)),
        options=SCORES,
    ),
    case(
        layers.AdditiveAttention,
        DROPOUT | {"units": 3, "kernel_initializer": "he_normal"},
        MASKED_CROSS,
        (3, 1),
        outputs=((2, 5, 13), (2, 5, 11)),
        options=SCORES,
    ),
    case(
        layers.LuongAttention,
        DROPOUT | {"score": "general", "kernel_initializer": "he_normal"},
        CROSS | {"value_mask": padding(2, 11)},
        (1, 1),
        outputs=(2, 5, 13),
        note="general",
    ),
    case(
        layers.LuongAttention,
        {"score": "concat", "units": 3},
        CROSS | {"key": numbers(5, 2, 11, 3)},
        3,
        outputs=(2, 5, 13),
        note="concat",
    ),
    case(layers.LuongAttention, {}, SELF | {"query_mask": padding(2, 5)}, 0),
    # === Synthesizers ===
    case(
        layers.DenseSynthesizer,
        HEADS | DROPOUT | {"max_length": 7, "value_dim": 5},
        MASKED_PAIRS,
        (8, 1),
        outputs=((2, 5, 7), (2, 2, 5, 5)),
        options=SCORES,
    ),
    case(
        layers.FactorizedDenseSynthesizer,
        HEADS
        | DROPOUT
        | {"max_length": 8, "factor": 4, "use_bias": False, "kernel_initializer": "he_normal"},
        PADDED,
        (5, 1),
    ),
    case(
        layers.RandomSynthesizer,
        HEADS | DROPOUT | DRAWN | {"max_length": 7, "trainable_scores": False},
        SELF,
        (4, 2),
        outputs=((2, 5, 7), (2, 2, 5, 5)),
        options=SCORES,
        note="fixed",
    ),
    case(layers.RandomSynthesizer, HEADS | {"max_length": 7}, SELF, 5, options=CAUSAL),
    case(
        layers.FactorizedRandomSynthesizer,
        HEADS | DROPOUT | DRAWN | {"max_length": 7, "rank": 4},
        SELF | {"query_mask": padding(2, 5)},
        (6, 1),
    ),
    case(
        layers.SynthesizerMixture,
        HEADS
        | DROPOUT
        | DRAWN
        | {
            "max_length": 8,
            "members": ("dense", "factorized_dense", "fixed_random", "factorized_random"),
        },
        SELF,
        (17, 2),
    ),
    case(layers.SynthesizerMixture, HEADS | {"max_length": 8}, SELF, 8, note="dot product"),
    # === Linear attention ===
    case(
        layers.LinearAttention,
        HEADS | PROJECTIONS | {"value_dim": 5},
        CROSS | {"attention_mask": mask(3, 2, 2, 1, 11)},
        3,
        outputs=(2, 5, 17),
        note="cross",
    ),
    case(
        layers.LinearAttention,
        BIASES | HEADS_OF_4 | {"relative_positions": rotary()},
        WITH_KEY,
        8,
        options=CAUSAL,
        note="causal",
    ),
    case(
        layers.PerformerAttention,
        HEADS | PROJECTIONS | {"value_dim": 5, "num_features": 17, "seed": 3},
        CROSS | {"attention_mask": mask(3, 2, 2, 1, 11)},
        (3, 1),
        outputs=(2, 5, 17),
        note="cross",
    ),
    case(
        layers.PerformerAttention,
        BIASES | HEADS_OF_4 | {"relative_positions": rotary(), "seed": 3},
        WITH_KEY,
        (8, 1),
        options=CAUSAL,
        note="causal",
    ),
    # === Matrices that are read and changed ===
    case(
        layers.GatedLinearAttention,
        HEADS | PROJECTIONS | {"value_dim": 5, "decay_rank": 3, "temperature": 2.0},
        PADDED,
        7,
        outputs=(2, 5, 17),
    ),
    case(
        layers.GatedLinearAttention,
        BIASES | HEADS | {"use_gate": False, "epsilon": 1e-3},
        WITH_KEY,
        12,
        options=CAUSAL,
        note="causal",
    ),
    case(
        layers.DisentangledAttention,
        HEADS | PROJECTIONS | {"value_dim": 5, "num_buckets": 4, "max_distance": 9},
        PADDED,
        6,
        outputs=(2, 5, 17),
    ),
    case(
        layers.DisentangledAttention,
        BIASES
        | HEADS
        | {
            "num_buckets": None,
            "max_distance": 3,
            "kinds": ["content_to_position"],
            "epsilon": None,
        }
        | {"share_projections": False, "dropout": 0.1, "seed": 3},
        MASKED_PAIRS,
        (9, 1),
        options=CAUSAL,
        note="one part, projected apart",
    ),
    case(
        layers.HeadTransform,
        {"activation": "silu", "epsilon": 1e-3, "use_bias": True, "norm_bias": True}
        | {"kernel_initializer": "he_normal"},
        ON_X,
        4,
    ),
    case(
        layers.DeltaRuleAttention,
        HEADS | PROJECTIONS | {"value_dim": 5, "use_gate": True},
        PADDED,
        5,
        outputs=(2, 5, 17),
    ),
    case(
        layers.DeltaRuleAttention,
        BIASES | HEADS | {"epsilon": 1e-3},
        WITH_KEY,
        10,
        options=CAUSAL,
        note="causal",
    ),
    # === Few mixtures of positions ===
    case(
        layers.LinformerAttention,
        HEADS
        | PROJECTIONS
        | DROPOUT
        | {"max_length": 13, "projected_length": 3, "share_heads": False, "value_dim": 5},
        CROSS | {"attention_mask": mask(3, 2, 2, 1, 11)},
        (5, 1),
        outputs=(2, 5, 17),
        note="cross",
    ),
    case(
        layers.LinformerAttention,
        BIASES | HEADS | {"max_length": 5, "projected_length": 3, "share_key_value": True},
        WITH_KEY,
        9,
    ),
    case(
        layers.NystromAttention,
        HEADS
        | PROJECTIONS
        | DROPOUT
        | {"num_landmarks": 2, "iterations": 3, "convolution_width": 3, "value_dim": 5},
        PADDED,
        (4, 1),
        outputs=(2, 5, 17),
    ),
    case(layers.NystromAttention, BIASES | HEADS | {"num_landmarks": 3}, WITH_KEY, 8, note="key"),
    case(layers.NystromAttention, HEADS | {"num_landmarks": None}, PADDED, 6, note="exact"),
    case(
        layers.SinkhornAttention,
        HEADS
        | PROJECTIONS
        | DROPOUT
        | {
            "block_length": 2,
            "max_length": 7,
            "iterations": 3,
            "temperature": 0.5,
            "value_dim": 5,
        },
        PADDED,
        (6, 1),
        outputs=(2, 5, 17),
    ),
    case(
        layers.SinkhornAttention,
        BIASES | HEADS | {"block_length": 2, "max_length": 5},
        WITH_KEY,
        11,
        note="key",
    ),
    # === Sparse attention ===
    case(
        layers.LongformerAttention,
        HEADS
        | PROJECTIONS
        | DROPOUT
        | {"sliding_window": 2, "global_length": 2, "dilation": [1, 2], "value_dim": 5},
        PADDED | {"global_mask": np.arange(5) % 3 == np.array([[1], [2]])},
        (5, 1),
        outputs=(2, 5, 17),
    ),
    case(
        layers.LongformerAttention,
        BIASES | HEADS | {"sliding_window": 2, "dilation": 2},
        WITH_KEY,
        14,
        note="key",
    ),
    case(
        layers.BigBirdAttention,
        HEADS
        | PROJECTIONS
        | DROPOUT
        | {"block_length": 2, "num_random_blocks": 1, "full_length": 4, "value_dim": 5},
        PADDED,
        (3, 2),
        outputs=(2, 5, 17),
    ),
    case(
        layers.BigBirdAttention,
        BIASES | HEADS | {"block_length": 2, "repeat_first": True},
        WITH_KEY,
        8,
        note="key",
    ),
    case(
        layers.SparseAttention,
        HEADS | PROJECTIONS | DROPOUT | {"stride": 2, "value_dim": 5},
        PADDED,
        (3, 1),
        outputs=(2, 5, 17),
    ),
    case(
        layers.SparseAttention,
        BIASES | HEADS | {"stride": 3, "pattern": "fixed", "summary_length": 2},
        WITH_KEY,
        8,
        options=CAUSAL,
        note="fixed",
    ),
    case(
        layers.LSHAttention,
        HEADS | DROPOUT | {"num_buckets": 4, "num_hashes": 2, "chunk_length": 2, "value_dim": 5},
        PADDED,
        (6, 2),
    ),
    case(
        layers.GlobalLocalAttention,
        HEADS
        | DROPOUT
        | {
            "radius": 1,
            "global_length": 2,
            "max_distance": 2,
            "num_labels": 6,
            "share_projections": False,
        },
        SELF
        | {
            "query_mask": padding(2, 5),
            "global_query": GLOBALS,
            "global_query_mask": padding(2, 3),
        },
        (11, 1),
        outputs=((2, 5, 7), (2, 3, 7)),
    ),
    case(
        layers.LocalAttention,
        HEADS
        | DROPOUT
        | PROJECTIONS
        | {"sliding_window": 3, "value_dim": 5, "relative_positions": alibi()},
        SELF | {"attention_mask": mask(3, 2, 2, 1, 5)},
        (3, 1),
        outputs=(2, 5, 17),
    ),
    case(
        layers.LocalAttention,
        HEADS | BIASES | {"sliding_window": 2},
        WITH_KEY,
        8,
        options=CAUSAL,
        still=("key/bias",),
        note="causal",
    ),
    # === Memory ===
    case(
        layers.RecurrentMemoryAttention,
        HEADS_OF_4 | {"memory_length": 3, "relative_positions": rotary(), "dropout": 0.2},
        SELF,
        (6, 1),
        options=CAUSAL,
    ),
    case(
        layers.CompressiveMemoryAttention,
        HEADS_OF_4
        | {
            "memory_length": 3,
            "compressed_length": 2,
            "compression_rate": 2,
            "compression": "mean",
            "relative_positions": alibi(),
        },
        SELF,
        6,
    ),
    case(
        layers.SegmentRecurrence,
        {
            "attention": lambda: layers.CompressiveMemoryAttention(2, 4, 3, 2, 2, dropout=0.3),
            "segment_length": 3,
        },
        SELF,
        (9, 1),
    ),
    case(
        layers.ConvolvedAttention,
        {"attention": lambda: layers.LinearAttention(2, 4)},
        SELF,
        (5, 0),
        options=CAUSAL,
    ),
    case(
        layers.ConvolvedAttention,
        {
            "attention": lambda: layers.MultiHeadAttention(2, 4, dropout=0.3),
            "kernel_size": 2,
            "kernel_initializer": "he_normal",
            "kernel_regularizer": "l2",
            "kernel_constraint": "max_norm",
        },
        SELF,
        (5, 1),
        note="options",
    ),
    # === Parts of blocks ===
    case(layers.FeedForward, {"intermediate_dim": 11}, ON_X, 4),
    case(
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
        ON_X,
        (3, 1),
        note="gated",
    ),
    case(layers.RMSNormalization, {"epsilon": 1e-3}, ON_X, 1),
    # === Blocks ===
    case(
        layers.TransformerEncoderBlock,
        PRE_NORM
        | {
            "attention": self_attention(),
            "feed_forward": feed_forward(),
            "attention_norm": keras.layers.Activation("linear"),
        },
        ON_X,
        (10, 2),
        note="without a norm of the attention",
    ),
    case(
        layers.TransformerEncoderBlock,
        {"attention": self_attention(), "feed_forward": feed_forward(), "norm": rms_norm()},
        {"inputs": X, "padding_mask": padding(2, 5)},
        10,
    ),
    case(
        layers.TransformerEncoderBlock,
        PRE_NORM
        | {
            "attention": self_attention(dropout=0.1),
            "feed_forward": feed_forward(dropout=0.1),
            "recompute": True,
        },
        {"inputs": X, "attention_mask": mask(1, 2, 5, 5)},
        (12, 4),
        options=CAUSAL,
        note="pre-norm",
    ),
    case(
        layers.TransformerDecoderBlock,
        {
            "self_attention": self_attention(),
            "cross_attention": self_attention(num_heads=3, key_dim=2),
            "feed_forward": feed_forward(),
            "norm": rms_norm(),
        },
        {
            "inputs": X,
            "source": SOURCE,
            "padding_mask": padding(2, 5),
            "source_padding_mask": padding(2, 11),
        },
        17,
    ),
    case(
        layers.TransformerDecoderBlock,
        PRE_NORM
        | {
            "self_attention": self_attention(),
            "feed_forward": feed_forward(gated=True),
            "recompute": True,
        },
        {"inputs": X, "attention_mask": mask(1, 2, 1, 5, 5)},
        (14, 2),
        note="decoder-only",
    ),
    case(
        layers.GlobalLocalEncoderBlock,
        PRE_NORM
        | {
            "attention": lambda: layers.GlobalLocalAttention(2, 3, 1, max_distance=2, dropout=0.1),
            "feed_forward": feed_forward(dropout=0.1),
        },
        {
            "inputs": X,
            "global_inputs": GLOBALS,
            "padding_mask": padding(2, 5),
            "global_padding_mask": padding(2, 3),
        },
        (13, 4),
        outputs=((2, 5, 7), (2, 3, 7)),
    ),
    case(
        layers.ReversibleBlock,
        {
            "attention": self_attention(dropout=0.1),
            "feed_forward": feed_forward(dropout=0.1),
            "dropout": 0.1,
            "epsilon": 1e-3,
            "seed": 5,
        },
        STREAMS | {"padding_mask": padding(2, 5)},
        (12, 4),
        outputs=((2, 5, 7), (2, 5, 7)),
    ),
    case(
        layers.ReversibleStack,
        {
            "blocks": lambda: [
                layers.ReversibleBlock(self_attention()(), feed_forward()(), name=f"block_{i}")
                for i in range(2)
            ]
        },
        STREAMS | {"attention_mask": mask(1, 2, 5, 5)},
        24,
        outputs=((2, 5, 7), (2, 5, 7)),
        options=CAUSAL,
    ),
    # === Pooling ===
    case(layers.SequencePooling, {}, ON_PADDED, 0, outputs=(2, 7)),
    case(layers.SequencePooling, {"pooling": "max"}, ON_PADDED, 0, outputs=(2, 7), note="max"),
    case(
        layers.SequencePooling, {"pooling": "mean_max"}, ON_PADDED, 0, outputs=(2, 14), note="both"
    ),
    case(layers.SequencePooling, {"pooling": "first"}, ON_X, 0, outputs=(2, 7), note="first"),
]

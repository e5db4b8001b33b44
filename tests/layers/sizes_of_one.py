"""Runs layers with one head, one row, one position, … and holds them against themselves in float64.

`main` is run in a process of its own, which a crash ends. The last line that it prints names the
layer.
"""

from functools import partial

import keras
import numpy as np
import tensorflow as tf

from keras_attn import layers, models

SHAPES = [(57, 14, 32), (2, 14, 32), (1, 14, 32), (57, 1, 32), (1, 1, 32)]
HEADS = (1, 64)
LENGTH = 16  # more than any
LONGEST = (*HEADS, LENGTH)
MEMBERS = ("dense", "factorized_dense", "factorized_random", "dot_product")


def alone(layer, x):
    return layer(x)


def self_attention(layer, x):
    return layer(x, x)


def with_memory(layer, x):
    memory = layer.initial_memory(x.shape[0], x.shape[-1])
    _, memory = layer(x, x, memory=memory)
    return layer(x, x, memory=memory)


def with_ids(layer, x):
    return layer(ids(x) % 7)


def with_segments(layer, x):
    return layer(x, ids(x) % 2)


def with_images(layer, x):
    return layer(tf.reshape(x, (*x.shape[:2], 8, 4)))


def with_positions(layer, x):
    return layer(ids(x))


def with_heads(layer, x):
    x = x[:, None]
    return layer(x, x)


def in_heads(layer, x):
    return layer(x[:, None])


def with_global_positions(layer, x):
    return layer(x, x[:, :1])


def recurrent(layer, x):
    return keras.layers.RNN(layer, return_sequences=True)(x)


def ids(x):
    return tf.reshape(tf.range(x.shape[0] * x.shape[1]), x.shape[:2])


def attention(**arguments):
    return layers.MultiHeadAttention(*HEADS, **arguments)


def feed_forward():
    return layers.FeedForward(64)


def global_local():
    return layers.GlobalLocalAttention(*HEADS, radius=3, max_distance=2)


def recurrent_memory():
    return layers.RecurrentMemoryAttention(*HEADS, 8)


def compressive_memory():
    return layers.CompressiveMemoryAttention(*HEADS, 8, 4, 1)


def called(call, makers):
    """Layers by name that are all called in one way."""
    return {name: (make, call) for name, make in makers.items()}


GROUPS = {
    "heads": called(
        self_attention,
        {
            "MultiHeadAttention": attention,
            "MultiHeadAttention, chunked": lambda: attention(flash_attention=True),
            "MultiHeadAttention, one key head": (
                lambda: layers.MultiHeadAttention(3, 64, num_key_value_heads=1)
            ),
            "MultiHeadAttention, relative": (
                lambda: attention(relative_positions=layers.RelativePositionBias(1))
            ),
            "MultiHeadAttention, Transformer-XL": (
                lambda: attention(relative_positions=layers.TransformerXLPositions(*HEADS))
            ),
            "LinearAttention": lambda: layers.LinearAttention(*HEADS),
            "LongformerAttention": lambda: layers.LongformerAttention(*HEADS, 1),
            "LongformerAttention, dilated": (
                lambda: layers.LongformerAttention(*HEADS, 3, dilation=2)
            ),
            "BigBirdAttention": lambda: layers.BigBirdAttention(*HEADS, 1, 1, seed=1),
            "SparseAttention": lambda: layers.SparseAttention(*HEADS, 4),
            "SparseAttention, fixed": lambda: layers.SparseAttention(*HEADS, 1, "fixed"),
            "LinformerAttention": lambda: layers.LinformerAttention(*LONGEST, 1),
            "NystromAttention": lambda: layers.NystromAttention(*HEADS, 1, 1, 1),
            "SinkhornAttention": lambda: layers.SinkhornAttention(*HEADS, 1, LENGTH, 1),
            "GatedLinearAttention": lambda: layers.GatedLinearAttention(*HEADS, decay_rank=1),
            "DisentangledAttention": lambda: layers.DisentangledAttention(*HEADS),
            "DeltaRuleAttention": lambda: layers.DeltaRuleAttention(*HEADS),
            "PerformerAttention": lambda: layers.PerformerAttention(*HEADS, seed=1),
            "LocalAttention": lambda: layers.LocalAttention(*HEADS, 4),
            "GlobalLocalAttention": global_local,
            "LSHAttention": (
                lambda: layers.LSHAttention(*HEADS, 2, num_hashes=1, chunk_length=4, seed=1)
            ),
        },
    ),
    "memories": {
        "RecurrentMemoryAttention": (recurrent_memory, self_attention),
        "RecurrentMemoryAttention, memory": (recurrent_memory, with_memory),
        "CompressiveMemoryAttention": (compressive_memory, self_attention),
        "CompressiveMemoryAttention, memory": (compressive_memory, with_memory),
        "ConvolvedAttention": (
            lambda: layers.ConvolvedAttention(layers.LinearAttention(*HEADS), 2),
            self_attention,
        ),
        "SegmentRecurrence": (
            lambda: layers.SegmentRecurrence(recurrent_memory(), 4),
            self_attention,
        ),
    },
    "synthesizers": called(
        self_attention,
        {
            "DenseSynthesizer": lambda: layers.DenseSynthesizer(*LONGEST),
            "FactorizedDenseSynthesizer": lambda: layers.FactorizedDenseSynthesizer(*LONGEST),
            "RandomSynthesizer": lambda: layers.RandomSynthesizer(*LONGEST),
            "FactorizedRandomSynthesizer": lambda: layers.FactorizedRandomSynthesizer(*LONGEST),
            "SynthesizerMixture": lambda: layers.SynthesizerMixture(*LONGEST, members=MEMBERS),
        },
    ),
    "scores": called(
        self_attention,
        {
            "SimpleSelfAttention": layers.SimpleSelfAttention,
            "AdditiveAttention": lambda: layers.AdditiveAttention(64),
            "LuongAttention": lambda: layers.LuongAttention("general"),
            "LuongAttention, concat": lambda: layers.LuongAttention("concat"),
        },
    )
    | {"IntraAttentionCell": (lambda: layers.IntraAttentionCell(16, 8), recurrent)},
    "blocks": called(
        self_attention,
        {
            "TransformerDecoderBlock": (
                lambda: layers.TransformerDecoderBlock(attention(), feed_forward(), attention())
            ),
            "ReversibleBlock": lambda: layers.ReversibleBlock(attention(), feed_forward()),
            "ReversibleStack": lambda: layers.ReversibleStack(
                [layers.ReversibleBlock(attention(), feed_forward())]
            ),
        },
    )
    | {
        "TransformerEncoderBlock": (
            lambda: layers.TransformerEncoderBlock(attention(), feed_forward()),
            alone,
        ),
        "GlobalLocalEncoderBlock": (
            lambda: layers.GlobalLocalEncoderBlock(global_local(), feed_forward()),
            with_global_positions,
        ),
    },
    "others": called(
        alone,
        {
            "LearnedPositionEmbedding": lambda: layers.LearnedPositionEmbedding(LENGTH),
            "SinusoidalPositionEncoding": layers.SinusoidalPositionEncoding,
            "VocabularyBias": layers.VocabularyBias,
            "ClassToken": layers.ClassToken,
            "ConvolutionalSubsampling": lambda: layers.ConvolutionalSubsampling(5),
            "SequencePooling": layers.SequencePooling,
            "FeedForward": feed_forward,
            "HeadTransform": lambda: layers.HeadTransform("silu"),
            "RMSNormalization": layers.RMSNormalization,
        },
    )
    | {
        "AlibiBias": (lambda: layers.AlibiBias(1), with_positions),
        "RelativePositionBias": (lambda: layers.RelativePositionBias(1), with_positions),
        "TransformerXLPositions": (lambda: layers.TransformerXLPositions(1, 32), with_heads),
        "RotaryEmbedding": (layers.RotaryEmbedding, in_heads),
        "SegmentEmbedding": (lambda: layers.SegmentEmbedding(2), with_segments),
        "TokenEmbedding": (lambda: layers.TokenEmbedding(7, 5), with_ids),
        "PatchEmbedding": (lambda: layers.PatchEmbedding(1, 5), with_images),
        "RandomShift": (lambda: layers.RandomShift(1), with_images),
    },
}

BACKBONE = {"num_layers": 1, "hidden_dim": 64, "num_heads": 1, "intermediate_dim": 16, "dropout": 0}
SEGMENTS = {"segment_length": 8, "memory_length": 8, "compressed_length": 8}
SCORES = {"scores": ("dense", "factorized_random"), "max_length": LENGTH}
HASHES = {"num_buckets": 2, "num_hashes": 1, "chunk_length": 4}
MODELS = {
    "CausalTransformer": partial(models.CausalTransformer, 7, **BACKBONE),
    "CompressiveTransformer": partial(models.CompressiveTransformer, 7, **SEGMENTS, **BACKBONE),
    "SynthesizerTransformer": partial(models.SynthesizerTransformer, 7, **SCORES, **BACKBONE),
    "Reformer": partial(models.Reformer, 7, **HASHES, **BACKBONE),
}


def results(layer, call, array):
    """What a layer gives, and the gradients of its sum of squares by input and weights."""
    x = tf.constant(array, layer.compute_dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = [y for y in keras.tree.flatten(call(layer, x)) if y.dtype.is_floating]
        total = sum(tf.reduce_sum(y**2) for y in outputs)
    by = [x, *(weight.value for weight in layer.trainable_variables)]
    return outputs + [y for y in tape.gradient(total, by) if y is not None]


def steps(layer, array):
    """What a layer gives for a prompt and for a step behind it, with one beam."""
    x = tf.constant(array, layer.compute_dtype)
    prompt, real = x[:, :-1], tf.ones((array.shape[0], array.shape[1] - 1), "bool")
    output, cache = layer.attend_prompt(prompt, layer.initial_cache(len(array)), real)
    return [output, layer.attend_step(x[:, -1:], cache, 0)[0]]


def compare(name, found, expected):
    for place, (y, other) in enumerate(zip(found, expected, strict=True)):
        y, other = (np.asarray(tf.convert_to_tensor(z)) for z in (y, other))
        size = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(y, other, rtol=0, atol=2e-4 * size, err_msg=f"{name}, {place}")


def check_layer(name, make, call, shape):
    array = np.random.default_rng(0).normal(size=shape)
    keras.config.set_floatx("float32")
    layer = make()
    call(layer, tf.constant(array, "float32"))
    keras.config.set_floatx("float64")
    judge = make()
    call(judge, tf.constant(array, "float64"))
    judge.set_weights([np.asarray(w, "float64") for w in layer.get_weights()])
    # What is wrong depends on what memory held before.
    for _ in range(3 if shape == SHAPES[0] else 1):
        compare(name, results(layer, call, array), results(judge, call, array))
    if hasattr(layer, "attend_step") and call is self_attention and shape[1] > 1:
        compare(name, steps(layer, array), steps(judge, array))


def check_model(name, make, shape):
    token_ids = np.random.default_rng(0).integers(1, 7, shape[:2]).astype("int32")
    model, judge = make(dtype="float32"), make(dtype="float64")
    judge.set_weights([np.asarray(w, "float64") for w in model.get_weights()])
    names = [tensor.name for tensor in model.inputs]
    inputs = dict.fromkeys(names, tf.constant(token_ids))
    for training in (False, True):
        compare(name, [model(inputs, training=training)], [judge(inputs, training=training)])


def main(groups):
    cases = {name: case for group in groups for name, case in GROUPS.get(group, {}).items()}
    for shape in SHAPES:
        for name, (make, call) in cases.items():
            print(f"{name} {shape}", flush=True)
            check_layer(name, make, call, shape)
        for name, make in MODELS.items() if "models" in groups else ():
            print(f"{name} {shape}", flush=True)
            check_model(name, make, shape)
    print("done")

"""CompressiveMemoryAttention: its memory and loss as the paper's algorithms write them."""

import keras
import numpy as np
import pytest

from keras_attn.layers import CompressiveMemoryAttention, RecurrentMemoryAttention, RotaryEmbedding
from keras_attn.validation import UserError
from tests.harness import assert_close, assert_same, numbers, numpy
from tests.layers.judges import assert_steps, naive_attention, spread_weights

X = numbers(1, 2, 24, 6)
COMPRESSIONS = ("mean", "max", "convolution", "dilated_convolution", "most_used")
LENGTHS = [5, None] if keras.backend.backend() == "tensorflow" else [5]  # of caches


def built(compression="convolution", memory_length=4, compressed_length=3, rate=2, **arguments):
    layer = CompressiveMemoryAttention(
        2, 4, memory_length, compressed_length, rate, compression, **arguments
    )
    layer(X, X + 0)
    return spread_weights(layer)


def read(layer, x, length, **arguments):
    """Outputs and memories of segments one after the other."""
    memory, outputs, memories = layer.initial_memory(len(x), x.shape[2]), [], []
    for start in range(0, x.shape[1], length):
        segment = x[:, start : start + length]
        output, memory = layer(segment, segment, memory=memory, use_causal_mask=True, **arguments)
        outputs.append(numpy(output))
        memories.append(memory)
    return outputs, memories


def convolved(x, layer, stride=1, dilation=1, same=False):
    """A convolution by loops: x (length, features)."""
    kernel, bias = numpy(layer.kernel), numpy(layer.bias)
    reach = (len(kernel) - 1) * dilation
    if same:
        x = np.concatenate([np.zeros((reach // 2, 6)), x, np.zeros((reach - reach // 2, 6))])
    starts = range(0, len(x) - reach, stride)
    return np.stack(
        [bias + sum(x[s + i * dilation] @ kernel[i] for i in range(len(kernel))) for s in starts]
    )


def by_hand(layer, states):
    """Compressed states of one sequence."""
    rate, kind = layer.compression_rate, layer.compression
    groups = [states[i : i + rate] for i in range(0, len(states) - rate + 1, rate)]
    if kind == "mean":
        return np.stack([group.mean(0) for group in groups])
    if kind == "max":
        return np.stack([group.max(0) for group in groups])
    if kind == "dilated_convolution":
        for dilation, part in zip((1, 2), layer.compress.dilated, strict=True):
            states = states + np.maximum(convolved(states, part, 1, dilation, same=True), 0)
    return convolved(states[: len(groups) * rate], layer.compress.convolution, stride=rate)


@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c != "most_used"])
@pytest.mark.parametrize("rate", [2, 3])
def test_what_falls_out_is_compressed(compression, rate):
    layer = built(compression, 6, 5, rate)
    _, memories = read(layer, X, 6)
    for row, number in np.ndindex(2, 4):
        memory = memories[number]
        segments = [X[row, i : i + 6] for i in range(0, 6 * number, 6)]  # that have fallen out
        expected = [by_hand(layer, segment) for segment in segments]
        slots = min(5, number * (6 // rate))
        if slots:
            expected = np.concatenate(expected)[-slots:]
            assert_close(numpy(memory.compressed)[row, -slots:], expected, rtol=1e-5, atol=1e-5)
        assert not numpy(memory.compressed)[row, : 5 - slots].any()
        assert numpy(memory.compressed_real)[row].sum() == slots
        assert_same(numpy(memory.states)[row], X[row, 6 * number : 6 * number + 6])


def test_the_most_used_stay():
    layer = built("most_used", 4, 2, 2)
    _, (_, second, third) = read(layer, X[:, :12], 4)
    segment = X[:, 8:12]
    (_, scores), _ = layer(
        segment, segment, memory=second, use_causal_mask=True, return_attention_scores=True
    )
    usage = numpy(scores).mean((1, 2))[:, 2:6]  # of what falls out
    for row in range(2):
        kept = sorted(np.argsort(usage[row])[-2:])
        assert_same(numpy(third.compressed)[row], X[row, 4:8][kept])
    assert numpy(third.compressed_real).all()


@pytest.mark.parametrize("compression", ["mean", "max", "most_used", "convolution"])
@pytest.mark.parametrize("segment", [3, 4, 5])
def test_a_rate_of_one_is_a_longer_memory(compression, segment):
    layer = built(compression, 4, 6, 1)
    if compression == "convolution":
        layer.compress.convolution.set_weights([np.eye(6)[None], np.zeros(6)])
    judge = RecurrentMemoryAttention(2, 4, 10)
    judge(X, X + 0)
    of_compression = {weight.path for weight in layer.compress.weights}
    judge.set_weights([numpy(w) for w in layer.weights if w.path not in of_compression])
    stream = X[:, : 24 // segment * segment]
    assert_close(read(layer, stream, segment)[0], read(judge, stream, segment)[0], atol=5e-6)


def test_padding_is_not_compressed():
    layer = built("mean", 4, 2, 2)
    mask = np.arange(4)[None, :] < np.array([[1], [0]])
    memory = layer.initial_memory(2, 6)
    _, memory = layer(X[:, :4], X[:, :4], value_mask=mask, memory=memory)
    _, memory = layer(X[:, 4:8], X[:, 4:8], memory=memory)
    assert_same(memory.compressed_real, [[True, False], [False, False]])
    assert_close(numpy(memory.compressed)[0, 0], X[0, 0], atol=1e-6)
    assert not numpy(memory.compressed)[0, 1].any()


def lost_by_hand(layer, query, old, slots, real):
    """Mean squared difference of what queries read, by loops (algorithm 2)."""
    context = []
    layer.output_projection.kernel.assign(np.eye(8))
    layer.output_projection.bias.assign(np.zeros(8))
    for states, mask in ((old, real), (slots, real.reshape(2, -1, 2).any(-1))):
        output, _ = naive_attention(layer, query, states, mask=mask[:, None, None])
        context.append(output)
    return ((context[0] - context[1]) ** 2).mean()


def test_the_loss_is_what_reading_again_loses():
    layer = built(output_shape=8)
    _, memory = layer(X[:, :4], X[:, :4], memory=layer.initial_memory(2, 6))
    layer(X[:, 4:8], X[:, 4:8], memory=memory, training=True)
    (found,) = layer.losses
    old = X[:, :4]
    slots = np.stack([by_hand(layer, row) for row in old])
    expected = lost_by_hand(layer, X[:, 4:8], old, slots, np.ones((2, 4), bool))
    assert_close(found, expected, rtol=1e-5)
    layer(X[:, 4:8], X[:, 4:8], memory=memory)
    assert not layer.losses


def test_the_loss_trains_the_compression_alone():
    layer = built()
    _, memory = layer(X[:, :4], X[:, :4], memory=layer.initial_memory(2, 6))
    x = keras.Input((4, 6))
    states, real, *compressed = (numpy(part) for part in memory)
    inputs = type(memory)(
        *(keras.Input(part.shape[1:], dtype=part.dtype.name) for part in (states, real)),
        *(keras.Input(part.shape[1:], dtype=part.dtype.name) for part in compressed),
    )
    output, after = layer(x, x, memory=inputs)
    model = keras.Model([x, *inputs], keras.layers.Dense(1, kernel_initializer="zeros")(output))
    assert [part.shape for part in after] == [(None, *part.shape[1:]) for part in memory]
    # The model's loss has no gradient for its layers: what changes, the layer's loss changes.
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = {w.path: numpy(w) for w in layer.trainable_variables}
    arrays = [X[:, 4:8], states, real, *compressed]
    lost = []
    for _ in range(8):
        lost.append(model.fit(arrays, np.zeros((2, 4, 1)), verbose=0).history["loss"][0])
    changed = {w.path for w in layer.trainable_variables if (numpy(w) != before[w.path]).any()}
    assert changed == {w.path for w in layer.compress.trainable_variables}
    assert lost[-1] < lost[0]


@pytest.mark.parametrize("max_length", LENGTHS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_steps_after_a_memory_equal_the_segment(compression, max_length):
    layer = built(compression, relative_positions=RotaryEmbedding())
    _, memories = read(layer, X[:, :12], 4)
    memory = memories[1]
    segment = X[:, 8:12]
    expected, _ = layer(segment, segment, memory=memory, use_causal_mask=True)
    cache = layer.initial_cache(2, max_length, memory=memory)
    assert_steps(layer.attend_step, cache, segment, expected)


def test_mistakes_are_told():
    with pytest.raises(UserError, match="`compressed_length` .* Received: compressed_length=0"):
        CompressiveMemoryAttention(2, 3, 4, 0)
    with pytest.raises(UserError, match="compression.*Received: compression='median'"):
        CompressiveMemoryAttention(2, 3, 4, 4, compression="median")
    layer = built(rate=3)
    with pytest.raises(UserError, match="segment_length=2, compression_rate=3"):
        layer(X[:, :2], X[:, :2], memory=layer.initial_memory(2, 6))

"""SegmentRecurrence: all at once what a memory attention reads segment by segment."""

import keras
import numpy as np
import pytest

from keras_attn.layers import (
    CompressiveMemoryAttention,
    MultiHeadAttention,
    RecurrentMemoryAttention,
    SegmentRecurrence,
    TransformerXLPositions,
)
from tests.harness import assert_close, numbers, numpy
from tests.layers.differentiation import value_and_gradients
from tests.layers.judges import assert_steps, called
from tests.refusals import refused

X = numbers(1, 2, 23, 6)
ATTENTIONS = {
    "recurrent": lambda **kw: RecurrentMemoryAttention(2, 4, 7, **kw),
    "short memory": lambda **kw: RecurrentMemoryAttention(2, 4, 3, **kw),
    "mean": lambda **kw: CompressiveMemoryAttention(2, 4, 3, 5, 2, "mean", **kw),
    "convolution": lambda **kw: CompressiveMemoryAttention(2, 4, 7, 2, 2, "convolution", **kw),
}


def built(attention, segment_length=5, **arguments):
    return called(SegmentRecurrence(attention(**arguments), segment_length), X, X + 0)


def one_by_one(layer, x, **masks):
    """What the attention within reads, segment by segment."""
    memory, outputs = layer.attention.initial_memory(x.shape[0], x.shape[2]), []
    for start in range(0, x.shape[1], layer.segment_length):
        here = slice(start, start + layer.segment_length)
        output, memory = layer.attention(
            x[:, here],
            x[:, here],
            memory=memory,
            use_causal_mask=True,
            **{name: mask[:, here] for name, mask in masks.items()},
        )
        outputs.append(output)
    return keras.ops.concatenate(outputs, axis=1)


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("length", [23, 20, 4])
def test_equals_segments_one_by_one(name, length):
    layer, x = built(ATTENTIONS[name]), X[:, :length]
    assert_close(layer(x, x, use_causal_mask=True), one_by_one(layer, x), atol=3e-6)


@pytest.mark.parametrize("name", ["recurrent", "mean"])
def test_padding_is_remembered_as_nothing(name):
    layer = built(ATTENTIONS[name])
    x, real = X[:, :20], np.arange(20)[None, :] < np.array([[8], [20]])
    ours = numpy(layer(x, x, value_mask=real, use_causal_mask=True))
    assert_close(ours, one_by_one(layer, x, value_mask=real), atol=3e-6)
    changed = np.where(real[..., None], x, 7.0).astype("float32")
    theirs = numpy(layer(changed, changed, value_mask=real, use_causal_mask=True))
    assert_close(ours[real], theirs[real], atol=3e-6)


@pytest.mark.parametrize("name", ["recurrent", "convolution"])
def test_gradients_stay_within_a_segment(name):
    layer = built(ATTENTIONS[name], 4)
    x, upstream = X[:, :20], numbers(3, 2, 20, 6)
    upstream[:, :12] = 0
    gradients = []
    for function in (lambda x: layer(x, x, use_causal_mask=True), lambda x: one_by_one(layer, x)):
        run = value_and_gradients(
            lambda tensors, f=function: keras.ops.sum(keras.ops.multiply(f(tensors[0]), upstream))
        )
        gradients.append(numpy(run([x])[1][0]))
    assert_close(*gradients, atol=3e-6)
    assert not gradients[0][:, :12].any()
    assert np.abs(gradients[0][:, 12:]).max() > 0.1


def test_a_memory_of_everything_is_attention_to_everything():
    layer = built(lambda: RecurrentMemoryAttention(2, 4, 30), 6)
    judge = MultiHeadAttention(2, 4, relative_positions=TransformerXLPositions(2, 4))
    judge.build(X.shape)
    judge.set_weights([numpy(weight) for weight in layer.weights])
    assert_close(layer(X, X, use_causal_mask=True), judge(X, X, use_causal_mask=True), atol=3e-6)


def test_the_loss_of_a_compression_is_the_mean_of_the_segments_losses():
    layer, x = built(ATTENTIONS["convolution"], 4), X[:, :20]
    layer(x, x, training=True, use_causal_mask=True)
    (ours,) = layer.losses
    memory, losses = layer.attention.initial_memory(2, 6), []
    for start in range(0, 20, 4):
        segment = x[:, start : start + 4]
        _, memory = layer.attention(
            segment, segment, memory=memory, training=True, use_causal_mask=True
        )
        losses.append(float(layer.attention.losses[0]))
    assert len(set(losses)) > 2
    assert float(ours) == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_steps_after_prompts_of_all_lengths_equal_the_whole(name):
    layer, count = built(ATTENTIONS[name]), 16
    x = np.concatenate([X] * 6)[:12]
    starts = np.array([0, 1, 4, 5, 6, 9, 10, 11, 15, 16, 3, 7])
    expected = numpy(layer(x, x, use_causal_mask=True))
    real = np.arange(count)[None, :] < starts[:, None]
    output, state = layer.attend_prompt(x[:, :count], layer.initial_cache(12), real)
    assert_close(numpy(output)[real], expected[:, :count][real], atol=3e-6)
    rows, at = np.arange(12)[:, None], starts[:, None] + np.arange(7)
    assert_steps(layer.attend_step, state, x[rows, at], expected[rows, at])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SegmentRecurrence(MultiHeadAttention(2, 4), 5), "RecurrentMemoryAttention or a"),
        (lambda: SegmentRecurrence(RecurrentMemoryAttention(2, 4, 3), 0), "`segment_length`"),
        (
            lambda: SegmentRecurrence(
                CompressiveMemoryAttention(2, 4, 3, 2, 2, compression="most_used"), 5
            ),
            "used most .* Received: compression='most_used'",
        ),
        (
            lambda: SegmentRecurrence(CompressiveMemoryAttention(2, 4, 3, 2, 6), 5),
            "segment_length=5, compression_rate=6",
        ),
    ],
)
def test_what_cannot_be_made(make, message):
    refused(message, make)


def test_masks_and_lengths_that_do_not_fit():
    layer = built(ATTENTIONS["recurrent"])
    refused("`value` does not fit the other inputs", layer, X[:, :3], X)
    refused("one for all heads", layer, X, X, attention_mask=np.ones((2, 2, 1, 23), bool))
    refused("cannot differ between queries", layer, X, X, attention_mask=np.ones((2, 23, 23), bool))

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import plan_epoch
from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.training import TrainingStep, make_optimizer
from keras_attn.training.workers.strategy import distributed_batches
from tests.training.stand_in import backbone, examples, settings

pytestmark = pytest.mark.tensorflow

RATE = 2.0**-7  # has no rounding error in float32, in which Keras keeps it


@pytest.fixture
def double():
    keras.config.set_dtype_policy("float64")


def one_update(batches, consistency=0.0, jit=False, loss_scaling=False, cpu_shards=1, **changes):
    """Weights and sums after one update from several micro-batches."""
    model = backbone()
    numbers = settings(**changes)
    optimizer = make_optimizer(numbers, RATE, model.trainable_variables, loss_scaling)
    step = TrainingStep(
        model,
        optimizer,
        tf.distribute.get_strategy(),
        label_smoothing=0.1,
        batch_tokens=numbers.batch_tokens,
        jit=jit,
        accumulate=len(batches) > 1,
        clip_norm=numbers.clip_norm,
        consistency=consistency,
        cpu_shards=cpu_shards,
    )
    sums = step(batches).numpy()
    return [np.array(w) for w in model.get_weights()], sums, optimizer


def planned(batch_tokens):
    rows = examples(31)
    plan = plan_epoch(rows, batch_tokens, seed=None)
    return list(distributed_batches(tf.distribute.get_strategy(), rows, plan))


def naive_update(batch, learning_rate, clip_norm):
    """The same update in plain TensorFlow: mean over real tokens, clip, Adam's first step.

    Returns the weights and the gradient's norm.
    """
    model = backbone()
    inputs, labels = batch
    with tf.GradientTape() as tape:
        logits = model(inputs)
        target = tf.one_hot(labels, logits.shape[-1], dtype=logits.dtype) * 0.9 + 0.1 / 17
        losses = tf.nn.softmax_cross_entropy_with_logits(target, logits)
        real = tf.cast(labels > 0, logits.dtype)
        loss = tf.reduce_sum(losses * real) / tf.reduce_sum(real)
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    gradients = [tf.convert_to_tensor(g).numpy() for g in gradients]
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    if clip_norm:
        assert norm > clip_norm, "the test must clip"
        gradients = [g * clip_norm / norm for g in gradients]
    # After one step Adam's moments are (1 - β₁) g and (1 - β₂) g²; Keras adds ε before correcting
    # the second, so the update is g / (|g| + ε / sqrt(1 - β₂)).
    weights = [
        w - learning_rate * g / (np.abs(g) + 0.001 / np.sqrt(1 - 0.98))
        for w, g in zip(model.get_weights(), gradients, strict=True)
    ]
    return weights, norm


@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
def test_update_against_plain_formula(double, clip_norm):
    (batch,) = planned(1000)
    weights, sums, _ = one_update([batch], clip_norm=clip_norm, epsilon=0.001)
    expected, norm = naive_update(batch, RATE, clip_norm)
    for ours, naive in zip(weights, expected, strict=True):
        np.testing.assert_allclose(ours, naive, rtol=0, atol=1e-8)  # of 0.0078
    assert sums[2] == np.count_nonzero(batch[1])
    assert sums[4] == pytest.approx(norm, rel=1e-9)


@pytest.mark.parametrize("jit", [False, True])
def test_accumulated_batches_equal_one_large_batch(double, jit):
    small, (large,) = planned(128), planned(1000)
    assert len(small) == 3
    assert len({int(tf.math.count_nonzero(labels)) for _, labels in small}) > 1
    accumulated, sums, _ = one_update(small, jit=jit, clip_norm=0.01, epsilon=0.001)
    at_once, large_sums, _ = one_update([large], clip_norm=0.01, epsilon=0.001)
    np.testing.assert_allclose(sums, large_sums, rtol=1e-13)
    for several, one in zip(accumulated, at_once, strict=True):
        np.testing.assert_allclose(several, one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("consistency", [0.0, 2.0])
@pytest.mark.parametrize(("shards", "rows"), [(2, 31), (3, 31), (3, 2)])
def test_shards_equal_the_whole_batch(double, shards, rows, consistency):
    batch = tf.nest.map_structure(lambda array: array[:rows], planned(1000)[0])
    given = {"consistency": consistency, "clip_norm": 0.01, "epsilon": 0.001}
    cut, sums, _ = one_update([batch], cpu_shards=shards, **given)
    whole, whole_sums, _ = one_update([batch], **given)
    np.testing.assert_allclose(sums, whole_sums, rtol=1e-12)
    for ours, expected in zip(cut, whole, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_shards_have_dropout_masks_of_their_own(dropout):
    signs = iter([1.0, -1.0])

    def difference(labels, logits, label_smoothing):
        loss, nll, count, correct = token_cross_entropy(labels, logits, label_smoothing)
        return loss, next(signs) * nll, count, correct

    same_rows = tf.nest.map_structure(lambda array: tf.repeat(array[:1], 2, 0), planned(1000)[0])
    model = backbone(dropout)
    optimizer = make_optimizer(settings(), RATE, model.trainable_variables, False)
    strategy = tf.distribute.get_strategy()
    sums = TrainingStep(model, optimizer, strategy, loss=difference, cpu_shards=2)([same_rows])
    assert (abs(sums[1]) > 1e-3) == (dropout > 0)


def test_accumulators_start_anew_with_each_update(double):
    small = planned(64)
    model = backbone()
    optimizer = make_optimizer(settings(), 0.01, model.trainable_variables, False)
    step = TrainingStep(
        model, optimizer, tf.distribute.get_strategy(), batch_tokens=64, accumulate=True
    )
    first = step(small[:2]).numpy()
    second = step(small[:2]).numpy()
    assert first[2] == second[2]
    assert second[0] < first[0]


def test_weight_decay_shrinks_matrices_only(double):
    (batch,) = planned(1000)
    decayed, _, _ = one_update([batch], weight_decay=0.5, epsilon=0.001)
    plain, _, _ = one_update([batch], epsilon=0.001)
    before = backbone().get_weights()
    for with_decay, without, start in zip(decayed, plain, before, strict=True):
        lost = RATE * 0.5 * start if start.ndim > 1 else 0 * start
        np.testing.assert_allclose(without - with_decay, lost, rtol=0, atol=1e-12)
    assert any(start.ndim == 1 for start in before)


def test_regularisation_losses_count():
    (batch,) = planned(1000)
    model = backbone()
    inputs = model.inputs
    penalised = keras.Model(inputs, keras.layers.ActivityRegularization(l2=0.5)(model.output))
    optimizer = make_optimizer(settings(), 0.01, penalised.trainable_variables, False)
    step = TrainingStep(penalised, optimizer, tf.distribute.get_strategy())
    logits = model(batch[0])
    plain = one_update([batch])[1]
    sums = step([batch]).numpy()
    penalty = 0.5 * float(tf.reduce_sum(logits**2)) / len(logits)  # Keras divides by the rows
    np.testing.assert_allclose(sums[1], plain[1], rtol=1e-5)
    np.testing.assert_allclose(sums[0], sums[1] + penalty * sums[2], rtol=1e-5)


def test_float16_scales_the_loss_and_skips_overflow():
    keras.config.set_dtype_policy("mixed_float16")
    (batch,) = planned(1000)
    scaled, scaled_sums, optimizer = one_update([batch], loss_scaling=True)
    before = backbone().get_weights()
    assert int(optimizer.iterations) == 1
    assert float(optimizer.dynamic_scale) == 2.0**15
    keras.config.set_dtype_policy("float32")
    plain, sums, _ = one_update([batch])
    assert scaled_sums[4] == pytest.approx(sums[4], rel=0.02)  # the norm without the scale
    for low, wide, start in zip(scaled, plain, before, strict=True):
        np.testing.assert_allclose(low - start, wide - start, atol=2e-3)
        assert np.abs(low - start).max() > 5e-3

    model = backbone()
    optimizer = make_optimizer(settings(), 0.01, model.trainable_variables, True)
    optimizer.dynamic_scale.assign(float("inf"))
    TrainingStep(model, optimizer, tf.distribute.get_strategy())([batch])
    assert int(optimizer.iterations) == 0
    np.testing.assert_equal(model.get_weights(), before)

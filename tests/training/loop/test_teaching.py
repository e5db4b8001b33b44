"""Soft targets against numbers worked out in NumPy, alone and inside an update."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import plan_epoch
from keras_attn.training import TrainingStep, make_optimizer
from keras_attn.training.loop.teaching import (
    Teaching,
    soft_binary_cross_entropy,
    soft_cross_entropy,
    squared_differences,
    tempered_sigmoid,
    tempered_softmax,
)
from keras_attn.training.workers.strategy import distributed_batches
from tests.training.stand_in import backbone, examples, settings

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(3)
LABELS = np.array([[2, 5, 0], [1, -100, 3]])
LOGITS, TAUGHT = RANDOM.normal(0, 3, (2, 2, 3, 5))
NUMBERS = np.array([[0.5, np.nan], [-1.0, 2.0]])


def softmax(values):
    raised = np.exp(values - values.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def classes_by_hand(temperature):
    p, q = softmax(TAUGHT / temperature), softmax(LOGITS / temperature)
    return temperature**2 * (p * np.log(p / q)).sum(-1)[LABELS > 0].sum()


def decisions_by_hand(temperature):
    p, q = sigmoid(TAUGHT[:, :, 0] / temperature), sigmoid(LOGITS[:, :, 0] / temperature)
    both = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return temperature**2 * both[LABELS > 0].sum()


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_divergences_by_hand(temperature):
    labels = tf.constant(LABELS)
    found = soft_cross_entropy(
        labels, tf.constant(LOGITS), tempered_softmax(TAUGHT, temperature), temperature
    )
    assert float(found) == pytest.approx(classes_by_hand(temperature), rel=1e-12)
    targets = tempered_sigmoid(TAUGHT[:, :, 0], temperature)
    logits = tf.constant(LOGITS[:, :, 0])
    found = soft_binary_cross_entropy(labels, logits, targets, temperature)
    assert float(found) == pytest.approx(decisions_by_hand(temperature), rel=1e-12)


def test_numbers_by_hand():
    outputs = tf.constant([[1.0, 7.0], [2.0, 3.0]])
    targets = tf.constant([[3.0, 9.0], [2.0, 0.0]])
    # (4 + 0 + 9) / 2: the second number of the first row is padding.
    assert float(squared_differences(tf.constant(NUMBERS), outputs, targets)) == 6.5


@pytest.mark.parametrize("loss", [soft_cross_entropy, soft_binary_cross_entropy])
def test_equal_student_has_no_loss_even_where_the_teacher_is_certain(loss):
    certain = np.array([[50.0, -60.0, -200.0]], "float32")
    of_shape = tempered_softmax if loss is soft_cross_entropy else tempered_sigmoid
    labels = tf.constant([1] if loss is soft_cross_entropy else [[2, 1, 1]])
    with tf.GradientTape() as tape:
        logits = tf.Variable(certain)
        found = loss(labels, logits, of_shape(certain, 2.0), 2.0)
    assert abs(float(found)) < 1e-6
    assert np.abs(tape.gradient(found, logits).numpy()).max() < 1e-6


def test_gradient_by_hand_and_columns_that_the_teacher_lacks():
    """Hinton et al., equation 2: T (q - p), here after the factor T²."""
    taught = softmax(TAUGHT[..., :4] / 3.0)
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        found = soft_cross_entropy(tf.constant(LABELS), logits, taught, 3.0)
    gradient = tape.gradient(found, logits).numpy()
    padded = np.concatenate([taught, np.zeros((2, 3, 1))], axis=-1)
    expected = 3.0 * (softmax(LOGITS / 3.0) - padded) * (LABELS > 0)[..., None]
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_teachers_are_averaged_in_probability():
    logits = RANDOM.normal(0, 3, (3, 2, 5))
    teaching = Teaching(
        [lambda inputs, labels, one=one: tempered_softmax(one, 2.0) for one in logits],
        soft_cross_entropy,
        0.5,
    )
    found = teaching.targets({}, tf.constant([1, 1])).numpy()
    np.testing.assert_allclose(found, np.mean(softmax(logits / 2.0), axis=0), rtol=1e-6)


def teacher_of(seed):
    model = backbone()
    generator = np.random.default_rng(seed)
    model.set_weights([generator.normal(0, 0.5, w.shape) for w in model.get_weights()])
    return model


def batches(batch_tokens=1000):
    rows = examples(31)
    plan = plan_epoch(rows, batch_tokens, seed=None)
    return list(distributed_batches(tf.distribute.get_strategy(), rows, plan))


def updated(parts, weight=0.25, teacher=None, **options):
    """Weights and sums of a student after an update; weights of its teacher."""
    model, teacher = backbone(), teacher or teacher_of(1)
    optimizer = make_optimizer(settings(epsilon=1.0), 0.5, model.trainable_variables, False)
    teaching = Teaching(
        [lambda inputs, labels: tempered_softmax(teacher(inputs, training=False), 2.0)],
        lambda *given: soft_cross_entropy(*given, temperature=2.0),
        weight,
    )
    step = TrainingStep(
        *(model, optimizer, tf.distribute.get_strategy()),
        batch_tokens=64,
        accumulate=len(parts) > 1,
        teaching=teaching,
        **options,
    )
    sums = step(parts).numpy()
    return [np.array(weight) for weight in model.get_weights()], sums, teacher.get_weights()


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_update_by_hand(weight):
    keras.config.set_dtype_policy("float64")
    [(inputs, labels)] = batches()
    student, teacher = backbone(), teacher_of(1)
    real = np.array(labels) > 0
    with tf.GradientTape() as tape:
        logits = student(inputs)
        q, soft = tf.nn.softmax(logits), tf.nn.softmax(logits / 2)
        p = softmax(teacher(inputs).numpy() / 2)
        hard = -tf.math.log(tf.gather(q, labels, batch_dims=2))[real]
        taught = 4 * tf.reduce_sum(p * tf.math.log(p / soft), axis=-1)[real]
        loss = tf.reduce_mean((1 - weight) * hard + weight * taught)
    gradients = tape.gradient(loss, [v.value for v in student.trainable_variables])
    norm = np.sqrt(sum((tf.convert_to_tensor(g).numpy() ** 2).sum() for g in gradients))
    _, sums, _ = updated([(inputs, labels)], weight)
    assert sums[0] / sums[2] == pytest.approx(float(loss), rel=1e-12)
    assert sums[1] / sums[2] == pytest.approx(float(tf.reduce_mean(hard)), rel=1e-12)
    assert sums[2] == real.sum()
    assert sums[4] == pytest.approx(norm, rel=1e-9)


@pytest.mark.parametrize(
    ("tokens", "options"),
    [
        (1000, {"cpu_shards": 3}),
        (128, {}),
        (1000, {"jit": True}),
        (128, {"jit": True, "cpu_shards": 2}),
        (1000, {"consistency": 2.0}),  # without dropout both halves are equal
    ],
)
def test_parts_of_a_batch_and_xla_change_nothing(tokens, options):
    keras.config.set_dtype_policy("float64")
    parts = batches(tokens)
    assert len(parts) == (1 if tokens == 1000 else 3)
    found, sums, _ = updated(parts, **options)
    expected, whole, _ = updated(batches())
    np.testing.assert_allclose(sums, whole, rtol=1e-9)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_near_float32(policy):
    expected, sums, _ = updated(batches())
    keras.config.set_dtype_policy(policy)
    found, half, _ = updated(batches())
    assert half[0] == pytest.approx(sums[0], rel=0.02)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_teacher_stays_as_it_is_and_teaches():
    teacher = teacher_of(1)
    before = [np.array(weight) for weight in teacher.get_weights()]
    found, sums, after = updated(batches(), 1.0, teacher)
    assert sums[0] > 0
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    start = backbone().get_weights()
    assert all((one != other).any() for one, other in zip(found, start, strict=True))
    # Another teacher, another update.
    other, _, _ = updated(batches(), 1.0, teacher_of(2))
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(found, other, strict=True))

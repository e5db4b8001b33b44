"""Loss and metrics over tokens in Keras: reductions, weights, labels, saving, training."""

import keras
import numpy as np
import pytest

from keras_attn.models import CausalTransformer
from keras_attn.training import Perplexity, TokenAccuracy, TokenCrossEntropy
from keras_attn.validation import UserError
from tests.harness import numpy
from tests.ops.naive_cross_entropy import naive_loss
from tests.refusals import refused


@pytest.fixture
def batch():
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 7, (3, 5)).astype("int32")
    labels[1, 2:] = 0
    labels[2, 4:] = 0
    logits = generator.normal(0, 3, (3, 5, 7)).astype("float32")
    labels[0, :3] = np.maximum(logits[0, :3].argmax(-1), 1)
    return labels, logits


def test_keras_loss_is_the_mean_over_real_tokens(batch):
    labels, logits = batch
    naive = naive_loss(labels, logits, 0.1)
    loss = TokenCrossEntropy(0.1)
    np.testing.assert_allclose(float(loss(labels, logits)), naive.sum() / 11, rtol=1e-6)
    total = TokenCrossEntropy(0.1, reduction="sum")(labels, logits)
    np.testing.assert_allclose(float(total), naive.sum(), rtol=1e-6)
    single = TokenCrossEntropy(0.1, reduction="none")(labels, logits)
    np.testing.assert_allclose(np.asarray(single), naive, rtol=1e-5)


def test_keras_loss_weights_rows(batch):
    labels, logits = batch
    weights = np.array([2.0, 0.0, 1.0], "float32")
    expected = (naive_loss(labels, logits, 0.0) * weights[:, None]).sum() / 11
    value = float(TokenCrossEntropy()(labels, logits, sample_weight=weights))
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_all_padding_is_zero_not_nan():
    assert float(TokenCrossEntropy()(np.zeros((2, 3), int), np.ones((2, 3, 5), "float32"))) == 0


def test_keras_loss_can_be_saved():
    loss = TokenCrossEntropy(0.2, reduction="sum", name="other")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert isinstance(again, TokenCrossEntropy)
    assert (again.label_smoothing, again.reduction, again.name) == (0.2, "sum", "other")


def test_compile_and_fit(batch):
    labels, _ = batch
    model = keras.Sequential([keras.layers.Embedding(7, 13), keras.layers.Dense(7)])
    model.compile("adam", loss=TokenCrossEntropy(0.1))
    first = model.evaluate(labels, labels, verbose=0)
    np.testing.assert_allclose(
        first, naive_loss(labels, np.asarray(model(labels)), 0.1).sum() / 11, rtol=1e-5
    )
    model.fit(labels, labels, epochs=30, batch_size=3, verbose=0)
    assert model.evaluate(labels, labels, verbose=0) < first - 0.1


@pytest.mark.parametrize("value", [1.0, -0.1, "0.1"])
def test_label_smoothing_must_be_a_rate(value):
    refused(rf"label_smoothing={value!r}", TokenCrossEntropy, value)


LABELS = np.array([[1, 2, 0], [3, 4, 2]])
LOGITS = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
WEIGHTS = np.array([[1.0, 0.5, 3.0], [0.0, 2.0, 0.0]], "float32")


@pytest.mark.parametrize("weights", [None, WEIGHTS, WEIGHTS[:, 0], np.zeros_like(WEIGHTS)])
@pytest.mark.parametrize("reduction", ["mean_with_sample_weight", "sum", "none", None])
def test_reductions_as_those_of_keras(reduction, weights):
    ours = TokenCrossEntropy(reduction=reduction, ignore_id=-1)
    theirs = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
    found = ours(LABELS, LOGITS, sample_weight=weights)
    if weights is not None and weights.ndim == 1:  # a weight for each row is ours alone
        weights = np.broadcast_to(weights[:, None], LABELS.shape)
    expected = theirs(LABELS, LOGITS, sample_weight=weights)
    np.testing.assert_allclose(numpy(found), numpy(expected), rtol=1e-5)


def test_means_are_over_real_tokens_and_their_weights():
    naive = naive_loss(LABELS, LOGITS, 0.0)
    mean = TokenCrossEntropy(reduction="mean")
    by_weight = TokenCrossEntropy(reduction="mean_with_sample_weight")
    np.testing.assert_allclose(float(mean(LABELS, LOGITS)), naive.sum() / 5, rtol=1e-5)
    np.testing.assert_allclose(float(by_weight(LABELS, LOGITS)), naive.sum() / 5, rtol=1e-5)
    # The third token is padding, so that its weight of 3 counts for nothing: 1 + 0.5 + 2.
    found = float(by_weight(LABELS, LOGITS, sample_weight=WEIGHTS))
    np.testing.assert_allclose(found, (naive * WEIGHTS).sum() / 3.5, rtol=1e-5)
    with pytest.raises(ValueError, match="reduction"):
        TokenCrossEntropy(reduction="median")


def test_the_label_that_is_ignored():
    labels = np.where(LABELS == 2, -100, LABELS)
    theirs = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-100, reduction="none"
    )(labels, LOGITS)
    loss = TokenCrossEntropy(reduction="none", ignore_id=-100)
    np.testing.assert_allclose(numpy(loss(labels, LOGITS)), numpy(theirs), rtol=1e-5)
    assert keras.losses.deserialize(keras.losses.serialize(loss)).ignore_id == -100
    with pytest.raises(UserError, match="`ignore_id` must be a whole number. .*ignore_id=None"):
        TokenCrossEntropy(ignore_id=None)


@pytest.mark.parametrize(("label", "ignore_id"), [(-1, 0), (-99, 0), (5, 0), (-1, -100), (0, 1)])
def test_labels_without_a_logit(label, ignore_id):
    labels = np.where(LABELS == 2, label, LABELS + (ignore_id == 1))
    loss = TokenCrossEntropy(ignore_id=ignore_id)
    if label == 0:  # a label like the others where another one is ignored
        assert np.isfinite(float(loss(np.minimum(labels, 4), LOGITS)))
        return
    message = rf"Labels must be in \[0, 4\], or {ignore_id} or -100"
    measured = [TokenAccuracy(ignore_id=ignore_id), Perplexity(ignore_id=ignore_id)]
    for function in (loss, *measured):
        refused(rf"{message} where they are ignored. .*=\[{label}\]", function, labels, LOGITS)
    traced = compiled(lambda labels, logits: loss(labels, logits))
    if keras.backend.backend() == "jax":
        assert np.isnan(float(traced(labels, LOGITS)))
    elif traced is not None:
        import tensorflow as tf

        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            traced(labels, LOGITS)
    if traced is not None:
        assert np.isfinite(float(traced(LABELS, LOGITS)))


def test_labels_of_minus_100_count_for_nothing_whatever_else_is_ignored():
    """As transformers' data collators write them."""
    labels = np.where(LABELS == 2, -100, LABELS)
    padded = np.where(LABELS == 2, 0, LABELS)
    for make in (TokenCrossEntropy, TokenAccuracy, Perplexity):
        assert float(make()(labels, LOGITS)) == float(make()(padded, LOGITS))


@pytest.mark.tensorflow
def test_fit_says_which_labels_are_wrong():
    import tensorflow as tf

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(7 * 5)])
    model.add(keras.layers.Reshape((7, 5)))
    model.compile("sgd", TokenCrossEntropy(), metrics=[TokenAccuracy()])
    x, labels = np.ones((2, 3)), np.full((2, 7), -1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Labels must be in \[0, 4\]"):
        model.fit(x, labels, verbose=0)
    history = model.fit(x, np.where(np.arange(7) < 3, 2, -100) * np.ones((2, 1)), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def compiled(function):
    """A traced function, whose labels cannot be seen; none on torch."""
    if keras.backend.backend() == "torch":
        return None
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(lambda *given: function(*map(tf.convert_to_tensor, given)))


HALF = np.log(
    [[[1, 2, 1, 4.0], [1, 2, 2, 3], [1, 1, 5, 1]], [[1, 1, 1, 5.0], [2, 2, 3, 1], [9, 1, 1, 1]]]
)


def test_metrics_by_hand():
    # Probabilities of the labels: 1/4, 1/4, padding; 5/8, 1/4, padding: right is the third alone.
    labels = np.array([[1, 2, 0], [3, 1, 0]])
    accuracy, perplexity = TokenAccuracy(), Perplexity()
    for rows in (slice(0, 1), slice(1, 2)):
        accuracy.update_state(labels[rows], HALF[rows])
        perplexity.update_state(labels[rows], HALF[rows])
    assert float(accuracy.result()) == 0.25
    assert float(perplexity.result()) == pytest.approx((4 * 4 * 8 / 5 * 4) ** (1 / 4), rel=1e-5)
    accuracy.reset_state()
    accuracy.update_state(labels, HALF, sample_weight=[1, 3])
    assert float(accuracy.result()) == 3 / 8
    # With -100 instead, padding is a label like the others: two more, of which one is right.
    accuracy = TokenAccuracy(ignore_id=-100)
    accuracy.update_state(labels, HALF)
    assert float(accuracy.result()) == pytest.approx(2 / 6)
    assert float(Perplexity().result()) == 1


@pytest.mark.parametrize("make", [TokenAccuracy, Perplexity])
def test_metrics_can_be_saved(make):
    metric = make(ignore_id=-100, name="mine")
    again = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert (type(again), again.ignore_id, again.name) == (make, -100, "mine")
    refused("ignore_id=1.5", make, ignore_id=1.5)


def test_metrics_of_a_language_model():
    model = CausalTransformer(5, num_layers=1, hidden_dim=6, num_heads=2, intermediate_dim=7)
    model.compile("sgd", TokenCrossEntropy(), metrics=[TokenAccuracy(), Perplexity(), "accuracy"])
    inputs = {"token_ids": np.array([[1, 3, 2, 0], [1, 4, 0, 0]], "int32")}
    labels = np.array([[3, 2, 4, 0], [4, 2, 0, 0]], "int32")
    found = model.evaluate(inputs, labels, verbose=0, return_dict=True)
    logits = numpy(model(inputs))
    real = labels != 0
    right = (logits.argmax(-1) == labels)[real].mean()
    assert found["token_accuracy"] == pytest.approx(right)
    assert found["perplexity"] == pytest.approx(
        np.exp(naive_loss(labels, logits, 0.0)[real].mean()), rel=1e-4
    )

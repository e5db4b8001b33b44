"""Numbers of texts: units, padding, folders, exports."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn import load
from keras_attn.models import SequenceClassifier, TransformerEncoder
from keras_attn.tasks import RegressionTask
from keras_attn.tokenizers import CharacterTokenizer
from tests.export.toy import verified
from tests.layers.judges import spread_weights
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
TEXTS = ["cab", "abba", "a", "bbbbacc", "cc"]
MEANS, DEVIATIONS = [40.0, -3.0], [8.0, 0.5]


def made(names=("price", "size"), means=MEANS, deviations=DEVIATIONS, outputs=2):
    model = spread_weights(SequenceClassifier(TransformerEncoder(7, **SIZES), outputs))
    return RegressionTask(model, CharacterTokenizer("abc"), names, means, deviations, 9)


def test_numbers_are_in_their_own_unit():
    task = made()
    rows = [task.backbone({"token_ids": task.input_ids(tf.constant([text]))}) for text in TEXTS]
    expected = np.concatenate(rows) * DEVIATIONS + MEANS
    np.testing.assert_allclose(task.predict(TEXTS), expected, rtol=1e-4)
    np.testing.assert_allclose(
        task.standardized(task.predict(TEXTS)), np.concatenate(rows), atol=1e-4
    )


def test_the_loss_is_half_the_squared_error_without_padding():
    labels = np.array([[1.0, 2.0], [0.5, -1.0], [np.nan, np.nan]], "float32")
    outputs = tf.Variable(np.array([[3.0, 2.5], [0.0, 0.0], [7.0, np.inf]], "float32"))
    with tf.GradientTape() as tape:
        loss, nll, count, correct = made().loss(labels, outputs)
    judge = keras.losses.MeanSquaredError(reduction="sum")(labels[:2], outputs[:2])
    assert float(loss) == float(nll) == pytest.approx(float(judge) * 2 / 2)
    assert (float(count), float(correct)) == (4, 0)
    np.testing.assert_allclose(tape.gradient(loss, outputs), [[2, 0.5], [-0.5, 1], [0, 0]])


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [1, 2])
def test_it_is_saved_and_exported(tmp_path, numbers):
    task = made(("price", "size")[:numbers], MEANS[:numbers], DEVIATIONS[:numbers], numbers)
    expected = task.predict(TEXTS)
    assert expected.shape == ((5,) if numbers == 1 else (5, 2))
    task.save(tmp_path / "task")
    folder = task.export(tmp_path / "exported")
    verified(folder)
    for again in (load(tmp_path / "task"), load(folder)):
        np.testing.assert_allclose(again.predict(TEXTS), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": []}, "At least one number is needed"),
        ({"names": ["a", "a"]}, "No name may be repeated"),
        ({"means": [1.0]}, "as many of each. Received: names=2, means=1, deviations=2, outputs=2"),
        ({"deviations": [1.0, 0.0]}, r"numbers above 0. Received: .* deviations=\[1.0, 0.0\]"),
        ({"means": [np.nan, 0.0]}, "`means` must be numbers"),
    ],
)
def test_mistakes(arguments, message):
    refused(message, made, **arguments)

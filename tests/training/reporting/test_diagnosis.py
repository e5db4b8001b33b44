import re

import keras
import numpy as np
import pytest

from keras_attn.models import Transformer
from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.training.reporting.diagnosis import first_failure
from keras_attn.validation import UserError
from tests.training.stand_in import StandInTask, backbone, examples, train

pytestmark = pytest.mark.tensorflow


class Fails(keras.layers.Layer):
    """Where a token is 13: infinite values, or a gradient that is."""

    def __init__(self, backwards=False, **options):
        super().__init__(**options)
        self.backwards = backwards

    def call(self, hidden, ids):
        bad = keras.ops.cast(keras.ops.expand_dims(ids == 13, -1), hidden.dtype)
        if self.backwards:  # the root of 0 is 0, its slope infinite
            return hidden + keras.ops.sqrt(hidden * 0.0 * bad + (1 - bad)) - (1 - bad)
        return hidden + bad / (1 - bad)


class Block(keras.layers.Layer):
    """A layer within a layer."""

    def __init__(self, backwards, **options):
        super().__init__(**options)
        self.inner = Fails(backwards, name="inner")

    def call(self, hidden, ids):
        return self.inner(hidden, ids)


def failing(backwards):
    plain = backbone()
    ids = plain.inputs[1]
    hidden = Block(backwards, name="block")(plain.layers[-2].output, ids)
    logits = keras.layers.Dense(17, name="head")(hidden)
    return keras.Model({"source_ids": plain.inputs[0], "target_ids": ids}, logits)


def batch(rows):
    return examples().assemble(np.asarray(rows))


def rows_with_13():
    return [row for row in range(61) if 13 in batch([row])[0]["target_ids"]]


def test_first_layer_forwards():
    found = first_failure(failing(False), token_cross_entropy, *batch(rows_with_13()[:1]))
    assert found.startswith("The first layer that gave values that are not finite, ")
    assert found.endswith("is block/inner.")


def test_first_gradient_backwards():
    found = first_failure(failing(True), token_cross_entropy, *batch(rows_with_13()[:1]))
    assert found.startswith("All layers give finite values; the first gradient that is not finite")
    assert re.search(r"is that of embedding\w*/embeddings\.$", found)


def test_weights():
    model = backbone()
    model.layers[-1].kernel.assign(model.layers[-1].kernel * np.nan)
    found = first_failure(model, token_cross_entropy, *batch([0, 1]))
    assert (
        found == f"The weights {model.layers[-1].kernel.path} have 187 values that are not finite."
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_sound_model_has_nothing_and_is_left_as_it_was(norm_first):
    model = Transformer(17, num_layers=2, hidden_dim=8, num_heads=2, norm_first=norm_first)
    inputs, labels = batch([0, 1, 2])
    before = model(inputs).numpy()
    assert first_failure(model, token_cross_entropy, inputs, labels) is None
    assert all("call" not in vars(layer) for layer in model._flatten_layers())
    np.testing.assert_array_equal(model(inputs), before)


@pytest.mark.parametrize("backwards", [False, True])
def test_training_stops_and_keeps_its_weights(tmp_path, backwards):
    task = StandInTask()
    task.backbone = failing(backwards)
    with pytest.raises(UserError) as raised:
        train(tmp_path, task=task)
    message = str(raised.value)
    assert "The loss is no longer a number in batch " in message
    assert ("block/inner" in message) != backwards
    assert "gradient_norm=" in message
    assert all(np.isfinite(weight).all() for weight in task.backbone.get_weights())

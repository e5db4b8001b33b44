"""GPT-2: sizes, initial weights, what it never predicts. `transformers` judges the rest."""

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import GPT2
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused, refused_in_one_line

SIZES = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3}


def test_the_feed_forward_network_is_four_times_as_wide():
    assert GPT2(11, **SIZES).blocks[0].feed_forward.intermediate_dim == 48
    assert GPT2(11, **SIZES, intermediate_dim=5).blocks[0].feed_forward.intermediate_dim == 5


def test_initial_weights_are_those_of_the_paper():
    model = GPT2(997, num_layers=8, hidden_dim=64, num_heads=4)
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:
            # Section 2.3: by the square root of the number of residual layers.
            share = 4 if weight.path.endswith("output/kernel") else 1
            assert numpy(weight).std() == pytest.approx(0.02 / share, rel=0.05), weight.path


def test_padding_is_never_predicted():
    model = spread_weights(GPT2(11, **SIZES, max_length=7))
    logits = numpy(model({"token_ids": np.array([[1, 5, 7, 3]], "int32")}))
    assert (logits[..., 0] < logits[..., 1:].min(-1) - 1e4).all()


def test_a_position_more_than_there_are():
    model = GPT2(11, **SIZES, max_length=7)
    assert model.max_length == 7
    short = layers.LocalAttention(3, 4, 3, relative_positions=layers.RelativePositionBias(3))
    assert GPT2(11, **SIZES, max_length=7, self_attention=short).max_length == 7
    refused("7", model, {"token_ids": np.ones((1, 8), "int32")})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 5}, "`num_heads` must divide `hidden_dim`.*num_heads=5, hidden_dim=12"),
        ({"num_layers": 0}, "`num_layers` must be"),
        ({"dropout": 1.0}, "`dropout` must be"),
        ({"attention_dropout": -0.1}, "`attention_dropout` must be"),
        ({"max_length": 0}, "`max_length` must be"),
    ],
)
def test_mistakes_take_one_line(arguments, message):
    refused_in_one_line(message, GPT2, 11, **(SIZES | arguments))

"""How much attention recurrent decoders say that each position of the source has had."""

import keras
import numpy as np
import pytest

from keras_attn.ops import masks
from keras_attn.validation import UserError
from tests.backends import named
from tests.harness import numpy
from tests.models.families import SOURCE, TARGET, made

NAMES = ["additive GRU", "Luong", "Luong's dot asked before the step", "GNMT"]


def asked(states):
    """The state of each row that the attention is asked with."""
    of_layer = states["bottom"] if "bottom" in states else states["cells"][-1]
    return of_layer[0]


@pytest.mark.parametrize("name", named(NAMES, on_jax=NAMES[1:3]))
def test_it_is_the_sum_of_the_probabilities(name):
    model = made(name)
    encoded, _ = model.encode(SOURCE)
    real = masks.padding_mask(SOURCE)
    state = model.initial_state(SOURCE, coverage=True)
    plain = model.initial_state(SOURCE)
    expected = np.where(SOURCE == 0, 1.0, 0.0)
    for token_ids in TARGET.T[:4]:
        before = state["hypothesis"]
        logits, state = model.step(keras.ops.convert_to_tensor(token_ids), state)
        others, plain = model.step(keras.ops.convert_to_tensor(token_ids), plain)
        np.testing.assert_array_equal(numpy(logits), numpy(others))
        # Luong's decoder with input feeding asks after the step, the others before it.
        states = state["hypothesis"] if "cells" in before else before
        _, probabilities = model.decoder.attention(
            asked(states)[:, None], encoded, value_mask=real, return_attention_scores=True
        )
        expected = expected + numpy(probabilities)[:, 0]
        np.testing.assert_allclose(numpy(state["hypothesis"]["coverage"]), expected, atol=1e-5)
    assert expected[0].sum() == pytest.approx(4, abs=1e-4)


@pytest.mark.parametrize("name", ["fixed context", "multi-head, fed"])
def test_who_cannot_tell(name):
    assert not made(name).supports_coverage
    with pytest.raises(UserError, match="needs a decoder with additive or Luong attention"):
        made(name).initial_state(SOURCE, coverage=True)

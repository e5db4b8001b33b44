"""GNMT against its paper's equations."""

import numpy as np
import pytest

from keras_attn.models import GNMT
from tests.layers.judges import spread_weights
from tests.models.families import assert_judged
from tests.models.naive_recurrent import additive_context, array, embedded, lstm, read, read_both


def naive(model, source_ids, target_ids):
    """Wu et al., 2016, section 3 and figure 1, four layers a side."""
    both, *uni = model.encoder.recurrent_layers
    source, _ = read_both(lstm, both, embedded(model.source_embedding, source_ids))
    for number, layer in enumerate(uni, 2):
        outputs, _ = read(lstm, layer.cell, source)
        if number >= 3:  # "residual connections start from the layer third from the bottom"
            outputs = [x + y for x, y in zip(source, outputs, strict=True)]
        source = outputs
    zero, decoder, result = np.zeros(model.hidden_dim), model.decoder, []
    bottom, above = [zero, zero], [[zero, zero] for _ in uni]
    for token in embedded(model.target_embedding, target_ids):
        # The bottom layer's output of the step before asks; every layer reads what is found.
        context = additive_context(decoder.attention, bottom[0], source)
        x, bottom = lstm(decoder.bottom, np.concatenate([token, context]), bottom)
        for i, layer in enumerate(decoder.stack.recurrent_layers):
            y, above[i] = lstm(layer.cell, np.concatenate([x, context]), above[i])
            x = x + y if i + 2 >= 3 else y
        result.append(x @ array(model.output_embedding.embeddings).T)
    return np.stack(result)


def test_the_papers_equations():
    model = spread_weights(GNMT(11, 13, num_layers=4, hidden_dim=6, attention_units=5))
    assert_judged(model, naive, atol=3e-5)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_layers_from_the_third_on_have_residuals(layers):
    model = GNMT(11, num_layers=layers, hidden_dim=6)
    assert [model.encoder._is_residual(i) for i in range(layers)] == [False, False, True][:layers]
    above = model.decoder.stack
    found = [] if above is None else [above._is_residual(i) for i in range(layers - 1)]
    assert found == [False, True][: layers - 1]

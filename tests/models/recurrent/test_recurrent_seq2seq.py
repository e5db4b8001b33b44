"""RecurrentSeq2Seq against the papers' equations, and what the fixed context cannot know."""

import numpy as np
import pytest

from keras_attn.layers import AdditiveAttention
from keras_attn.models import RecurrentSeq2Seq
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import SOURCE, TARGET, assert_judged, logits
from tests.models.naive_recurrent import (
    additive_context,
    array,
    embedded,
    general_context,
    gru,
    lstm,
    read,
    read_both,
)

BIASED = {"attention": None, "cell": "gru", "tie_output": False, "output_bias": True}


def encoded(model, step, ids):
    """The top layer's outputs, and the last states of all layers."""
    xs, ends = embedded(model.source_embedding, ids), []
    for layer in model.encoder.recurrent_layers:
        if hasattr(layer, "forward_layer"):
            xs, end = read_both(step, layer, xs)
        else:
            xs, end = read(step, layer.cell, xs)
        ends.append(end)
    return xs, ends


def bahdanau(model, step, source_ids, target_ids):
    """Equations of sections 3.1 and A.2.2: the context first, then the state, then maxout."""
    source, (bottom, *above) = encoded(model, step, source_ids)
    decoder, result = model.decoder, []
    for token in embedded(model.target_embedding, target_ids):
        context = additive_context(decoder.attention, bottom[0], source)
        x, bottom = step(decoder.bottom, np.concatenate([token, context]), bottom)
        for i, state in enumerate(above):
            x, above[i] = step(decoder.stack.recurrent_layers[i].cell, x, state)
        deep = np.concatenate([x, token, context]) @ array(decoder.readout.kernel)
        pairs = (deep + array(decoder.readout.bias)).reshape(-1, 2)
        result.append(pairs.max(axis=1) @ array(model.output_embedding.embeddings).T)
    return np.stack(result)


def luong(model, step, source_ids, target_ids):
    """Equations 5 and 8, with input feeding: the state first, then the context."""
    source, states = encoded(model, step, source_ids)
    decoder, result = model.decoder, []
    fed = np.zeros(model.hidden_dim)
    for token in embedded(model.target_embedding, target_ids):
        x = np.concatenate([token, fed])
        for i, state in enumerate(states):
            x, states[i] = step(decoder.cells[i], x, state)
        context = general_context(decoder.attention, x, source)
        fed = np.tanh(np.concatenate([context, x]) @ array(decoder.attentional.kernel))
        result.append(fed @ array(model.output_embedding.embeddings).T)
    return np.stack(result)


def sutskever(model, step, source_ids, target_ids):
    """Section 2: the decoder goes on from the encoder's last states, and sees nothing else."""
    _, states = encoded(model, step, source_ids)
    output, result = model.output_embedding, []
    for x in embedded(model.target_embedding, target_ids):
        for i, state in enumerate(states):
            x, states[i] = step(model.decoder.stack.recurrent_layers[i].cell, x, state)
        result.append(x @ array(output.embeddings).T + array(output.output_bias))
    return np.stack(result)


@pytest.mark.parametrize(
    ("judge", "step", "arguments"),
    [
        (bahdanau, gru, {"cell": "gru", "num_layers": 1}),
        (bahdanau, lstm, {"num_layers": 2, "bidirectional": False}),
        (luong, lstm, {"num_layers": 2, "attention": "luong"}),
        (luong, gru, {"cell": "gru", "num_layers": 1, "attention": "luong"}),
        (sutskever, lstm, {"num_layers": 2, "attention": None, "output_bias": True}),
        (sutskever, gru, BIASED | {"bidirectional": False}),
    ],
)
def test_the_papers_equations(judge, step, arguments):
    model = spread_weights(RecurrentSeq2Seq(11, 13, hidden_dim=6, **arguments))
    assert_judged(model, lambda model, *ids: judge(model, step, *ids), atol=2e-5)


def test_parameters_counted_by_hand():
    # Embeddings of 11 and 13 tokens; a GRU's three gates have two biases each. Attention: W, U, v.
    model = RecurrentSeq2Seq(11, 13, num_layers=1, hidden_dim=6, cell="gru", dropout=0.0)
    encoder = 2 * (3 * (6 * 3 + 3 * 3) + 2 * 9)
    decoder = 3 * ((6 + 6) * 6 + 6 * 6) + 2 * 18
    attention, readout = 6 * 6 + 6 * 6 + 6, 18 * 12 + 12
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
    assert trainable == 24 * 6 + encoder + decoder + attention + readout


def test_a_shared_vocabulary_may_have_a_bias():
    """One embedding for source, target and output, and a number for each token."""
    model = spread_weights(RecurrentSeq2Seq(13, hidden_dim=6, output_bias=True))
    assert model.source_embedding is model.output_embedding
    before = logits(model)
    bias = model.output_embedding.output_bias
    bias.assign(numpy(bias) + np.arange(13))
    np.testing.assert_allclose(
        logits(model) - before, np.zeros_like(before) + np.arange(13), atol=1e-5
    )


def test_a_fixed_context_has_the_size_of_a_state_whatever_the_length():
    """All that decoding knows of 5 tokens or of 25 is one vector a layer."""
    model = RecurrentSeq2Seq(11, hidden_dim=6, attention=None, cell="gru", num_layers=2)
    longer = np.tile(SOURCE[:1], (1, 5))
    for ids in (SOURCE[:1], longer):
        state = model.initial_state(ids)
        assert state["source"]["projected"] == {}
        shapes = [[tuple(part.shape) for part in layer] for layer in state["hypothesis"]]
        assert shapes == [[(1, 6)], [(1, 6)]]


def test_sources_of_equal_last_states_are_one_source_without_attention():
    """With attention the decoder looks behind the last states."""
    for attention, differs in ((None, False), ("additive", True), ("luong", True)):
        arguments = {"hidden_dim": 6, "num_layers": 1, "bidirectional": False}
        model = spread_weights(RecurrentSeq2Seq(11, attention=attention, cell="gru", **arguments))
        # A closed update gate at the last token: the state is the candidate, without memory.
        cell = model.encoder.recurrent_layers[0].cell
        bias, recurrent = numpy(cell.bias).copy(), numpy(cell.recurrent_kernel).copy()
        recurrent[:] = 0
        bias[:, :6] = -40
        cell.bias.assign(bias)
        cell.recurrent_kernel.assign(recurrent)
        first, second = (
            logits(model, [[*beginning, 2]], TARGET[:1]) for beginning in ((5, 7, 3), (9, 4, 8))
        )
        assert (np.abs(first - second).max() > 1e-3) == differs


def test_the_attention_given_is_a_mould():
    given = AdditiveAttention(7)
    model = RecurrentSeq2Seq(11, hidden_dim=6, attention=given)
    assert model.decoder.attention is not given
    assert model.decoder.attention.units == 7
    assert type(model.decoder).__name__ == "AttentiveDecoder"
    assert not given.built


def test_input_feeding_remembers_what_was_found():
    """The context of a step changes the next one's logits although its token does not."""
    model = spread_weights(RecurrentSeq2Seq(11, hidden_dim=6, attention="luong", num_layers=1))
    state = model.initial_state(SOURCE)
    token_ids = [4, 4]
    usual, _ = model.step(token_ids, state, 0)
    state["hypothesis"] = state["hypothesis"] | {"fed": 0.7 + 0 * state["hypothesis"]["fed"]}
    fed, _ = model.step(token_ids, state, 0)
    assert np.abs(numpy(usual) - numpy(fed)).max() > 1e-2

"""Ensembles against averages in NumPy, and their searches against every sequence."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search, greedy_search
from keras_attn.models import (
    Bert,
    CausalTransformer,
    ConvSeq2Seq,
    Ensemble,
    RecurrentSeq2Seq,
    SequenceClassifier,
    Transformer,
)
from tests.backends import quick, thinned
from tests.generation.comparison import as_numpy, assert_same_hypotheses, listed
from tests.generation.naive_search import enumerate_all
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import INPUTS, SOURCE, descended, logits
from tests.refusals import refused

SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
START, END = 1, 2


def softmax(values):
    raised = np.exp(values - values.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def transformers(vocabulary, *seeds):
    return [spread_weights(Transformer(vocabulary, **SIZES), seed) for seed in seeds]


def mixed():
    """Members of three families."""
    members = [
        Transformer(11, **SIZES),
        RecurrentSeq2Seq(11, hidden_dim=6),
        ConvSeq2Seq(11, num_layers=1, hidden_dim=6, learned_positions=17),
    ]
    return [spread_weights(member, seed) for seed, member in enumerate(members)]


def averaged(members, source, target):
    """Logarithms of the mean of the members' probabilities."""
    return np.log(np.mean([softmax(logits(one, source, target)) for one in members], axis=0))


def test_probabilities_are_averaged_at_each_step():
    members, beams = mixed(), 3
    model = Ensemble(members)
    expected = averaged(members, *INPUTS.values())
    np.testing.assert_allclose(numpy(model(INPUTS)), expected, atol=2e-5)
    state = model.initial_state(SOURCE, 9, beams)
    history, found = descended(quick(model.step), state, beams, ops.convert_to_tensor)
    expected = averaged(members, np.repeat(SOURCE, beams, axis=0), history)
    np.testing.assert_allclose(found, expected, atol=3e-5)


@pytest.mark.parametrize("beams", thinned([3, 1, 30], 3, on_tensorflow=3))
def test_search_against_every_sequence(beams):
    vocabulary, longest, sources = 5, 4, np.array([[3, 4, 2], [4, 2, 0]])
    members = transformers(vocabulary, 1, 2, 3)
    model = Ensemble(members)
    rules = {"start_id": START, "end_id": END, "max_length": longest, "forbidden_ids": (0, 1)}
    state = model.initial_state(sources, longest, beams)
    if beams == 1:
        found = as_numpy(greedy_search(model.step, state, **rules))
    else:
        found = beam_search(model.step, state, beams, length_penalty=0.6, n_best=3, **rules)
    for row, source in enumerate(sources):

        def next_log_probabilities(prefix, source=source):
            target = np.array([[START, *prefix]])
            return averaged(members, source[None], target)[0, -1]

        judged = enumerate_all(next_log_probabilities, vocabulary, END, longest, 0.6, 0, (0, 1))
        ours = listed(as_numpy(found), row)
        if beams == 30:  # as many as there are prefixes
            assert_same_hypotheses(ours, judged[:3])
        # Whatever a narrower search finds has the probability that it says.
        known = {text: total for _, total, text in judged}
        for _, total, text in ours:
            assert known[text] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("count", [1, 2])
def test_an_ensemble_of_equal_members_is_the_member(count):
    (single,) = transformers(11, 1)
    model = Ensemble(transformers(11, *[1] * count))
    expected = np.log(softmax(logits(single, *INPUTS.values())))
    np.testing.assert_allclose(numpy(model(INPUTS)), expected, atol=1e-5)
    found = [
        beam_search(one.step, one.initial_state(SOURCE, 6, 3), 3, START, END, 6, n_best=3)
        for one in (single, model)
    ]
    for row in range(len(SOURCE)):
        assert_same_hypotheses(*(listed(as_numpy(one), row) for one in found))


def test_language_models_continue_prompts():
    members = [spread_weights(CausalTransformer(11, **SIZES), seed) for seed in (1, 2)]
    model = Ensemble(members)
    prompts = np.array([[1, 5, 9], [1, 7, 0]])
    start_ids, state = model.prefill(prompts, 6, 1)
    np.testing.assert_array_equal(numpy(start_ids), [9, 7])
    found, _ = model.step(start_ids, state, 0)
    for row, length in ((0, 3), (1, 2)):
        ids = {"token_ids": prompts[row : row + 1, :length]}
        expected = np.log(np.mean([softmax(numpy(one(ids))[0, -1]) for one in members], axis=0))
        np.testing.assert_allclose(numpy(found)[row], expected, atol=2e-5)


@pytest.mark.parametrize("average", ["softmax", "sigmoid", "linear"])
def test_outputs_by_hand(average):
    members = [
        spread_weights(SequenceClassifier(Bert(11, **SIZES, max_length=13), 3), seed)
        for seed in (1, 2)
    ]
    inputs = {"token_ids": SOURCE}
    single = np.array([numpy(one(inputs)) for one in members], "float64")
    odds = np.mean(1 / (1 + np.exp(-single)), axis=0)
    expected = {
        "softmax": np.log(softmax(single).mean(0)),
        "sigmoid": np.log(odds / (1 - odds)),
        "linear": single.mean(0),
    }[average]
    model = Ensemble(members, average)
    np.testing.assert_allclose(numpy(model(inputs)), expected, atol=1e-5)
    assert model.output.dtype == "float32"  # also where it becomes a graph
    assert model.max_length == 13
    assert len({one.name for one in members}) == 2


def test_extreme_logits_stay_finite():
    outputs = [np.array([[900.0, -900.0]]), np.array([[-900.0, 900.0]])]
    inputs = keras.Input((1,), name="x")

    def member(values):
        return keras.Model({"x": inputs}, inputs * 0 + ops.convert_to_tensor(values, "float32"))

    for average, expected in (("softmax", np.log([[0.5, 0.5]])), ("sigmoid", [[0.0, 0.0]])):
        model = Ensemble([member(one) for one in outputs], average)
        found = numpy(model({"x": np.ones((1, 1), "float32")}))
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_members_that_do_not_fit():
    one, other = transformers(11, 1, 2)
    refused("at least one member", Ensemble, [])
    refused("Each member must be another model", Ensemble, [one, one])
    refused("as many outputs.*13.*11", Ensemble, [one, Transformer(13, **SIZES)])
    refused("the same inputs", Ensemble, [one, CausalTransformer(11, **SIZES)])
    refused("`average` must be one of", Ensemble, [one, other], "relu")
    refused("models with named inputs", Ensemble, [keras.Sequential([keras.layers.Dense(2)])])

import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search, greedy_search, length_normalizer
from tests.generation.toy_models import END, START, HashModel
from tests.harness import assert_close, assert_same
from tests.refusals import message_of, refused, refused_in_one_line

MODEL = HashModel(5)


def state_of(hypothesis):
    return {"source": None, "hypothesis": hypothesis}


def search(strategy, step=MODEL.step, state=None, **options):
    if state is None:
        state = MODEL.initial_state(np.zeros((3, MODEL.modulus, 5), "float32"))
    values = {"start_id": START, "end_id": END, "max_length": 4}
    if strategy is beam_search:
        values["beams"] = 2
    return strategy(step, state, **{**values, **options})


ROWS = "with one row per source"
# What the message asks for; an argument or several, and what is said to be received.
BOTH = [
    ("`max_length` must be a positive integer", {"max_length": 0}),
    ("`max_length` must be a positive integer", {"max_length": None}),
    ("`min_length` must not exceed `max_length`", {"min_length": 5}, "min_length=5, max_length=4"),
    ("`min_length` must be an integer of 0 or more", {"min_length": -1}),
    ("`length_penalty` must be a finite number of 0 or more", {"length_penalty": -0.3}),
    ("`length_penalty` must be a finite number of 0 or more", {"length_penalty": float("inf")}),
    (
        "`start_id` must be one token, or one for each source",
        {"start_id": np.array([1, 2], "int32")},
        "shape=(2,), sources=3",
    ),
    (
        "`end_id` and `forbidden_ids` must be token ids of 0 or more",
        {"end_id": -2},
        "end_id=-2, forbidden_ids=()",
    ),
    (
        "`forbidden_ids` must not contain `end_id`, or no text could end",
        {"forbidden_ids": (0, 2)},
        "end_id=2, forbidden_ids=(0, 2)",
    ),
    (
        "`end_id` and `forbidden_ids` must be below the vocabulary size of the logits",
        {"end_id": 7},
        "end_id=7, forbidden_ids=(), vocabulary=5",
    ),
    (
        'The state must be a dict of "source" and "hypothesis"',
        {"state": {"hypothesis": None}},
        "state=['hypothesis']",
    ),
    (f"The state must contain a tensor {ROWS}", {"state": state_of(None)}, "shapes=[]"),
    (f"The state must contain a tensor {ROWS}", {"state": state_of(np.float32(3))}, "shapes=[()]"),
    (
        'The tensors of `state["hypothesis"]` must have one row per source',
        {"state": state_of([np.zeros((3, 2)), np.zeros((6,))])},
        "shapes=[(3, 2), (6,)]",
    ),
]
BEAM = [
    ("`beams` must be a positive integer", {"beams": 0}),
    ("`n_best` must be a positive integer", {"n_best": 0}),
    ("`n_best` must not exceed `beams`", {"n_best": 3}, "n_best=3, beams=2"),
]
CASES = [(strategy, case) for strategy in (beam_search, greedy_search) for case in BOTH]
CASES += [(beam_search, case) for case in BEAM]


@pytest.mark.parametrize(("strategy", "case"), CASES)
def test_mistakes_are_told_in_one_line(strategy, case):
    message, options, *received = case
    ((name, value),) = options.items()
    received = received or [f"{name}={value}"]
    assert message_of(search, strategy, **options) == f"{message}. Received: {received[0]}."


@pytest.mark.parametrize("strategy", [beam_search, greedy_search])
def test_a_step_that_changes_the_structure_of_its_state(strategy):
    def step(token_ids, state, index):
        logits, state = MODEL.step(token_ids, state, index)
        del state["hypothesis"]["hash"]
        return logits, state

    expected = "^`step` must return a state of the structure it received. Received: .*(hash|arity)"
    refused_in_one_line(expected, search, strategy, step=step)


@pytest.mark.parametrize("strategy", [beam_search, greedy_search])
def test_a_step_with_logits_for_every_position(strategy):
    def step(token_ids, state, index):
        logits, state = MODEL.step(token_ids, state, index)
        return logits[:, None, :], state

    rows = 6 if strategy is beam_search else 3
    expected = (
        rf"must return logits of shape \(rows, vocabulary\). Received: shape=\({rows}, 1, 5\)"
    )
    refused(expected, search, strategy, step=step)


def test_length_normalizer_by_hand():
    lengths = ops.convert_to_tensor([1, 7, 13])
    assert_close(length_normalizer(lengths, 2.0), [1, 4, 9], rtol=1e-6)
    assert_close(length_normalizer(7, 0.6), 1.515717, rtol=1e-6)
    assert_same(length_normalizer(lengths, 0.0), [1, 1, 1])

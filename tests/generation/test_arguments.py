import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search, greedy_search, length_normalizer
from keras_attn.validation import UserError
from tests.generation.toy_models import END, START, HashModel
from tests.refusals import refused

MODEL = HashModel(5)


def search(strategy, step=MODEL.step, state=None, **options):
    if state is None:
        state = MODEL.initial_state(np.zeros((3, MODEL.modulus, 5), "float32"))
    values = {"start_id": START, "end_id": END, "max_length": 4}
    if strategy is beam_search:
        values["beams"] = 2
    return strategy(step, state, **{**values, **options})


BOTH = [
    ({"max_length": 0}, "`max_length` must be a positive integer. Received: max_length=0."),
    ({"max_length": None}, "`max_length` must be a positive integer. Received: max_length=None."),
    (
        {"min_length": 5},
        "`min_length` must not exceed `max_length`. Received: min_length=5, max_length=4.",
    ),
    ({"min_length": -1}, "`min_length` must be an integer of 0 or more. Received: min_length=-1."),
    (
        {"length_penalty": -0.3},
        "`length_penalty` must be a finite number of 0 or more. Received: length_penalty=-0.3.",
    ),
    (
        {"length_penalty": float("inf")},
        "`length_penalty` must be a finite number of 0 or more. Received: length_penalty=inf.",
    ),
    (
        {"start_id": np.array([1, 2], "int32")},
        "`start_id` must be one token, or one for each source. Received: shape=(2,), sources=3.",
    ),
    (
        {"end_id": -2},
        "`end_id` and `forbidden_ids` must be token ids of 0 or more. "
        "Received: end_id=-2, forbidden_ids=().",
    ),
    (
        {"forbidden_ids": (0, 2)},
        "`forbidden_ids` must not contain `end_id`, or no text could end. "
        "Received: end_id=2, forbidden_ids=(0, 2).",
    ),
    (
        {"end_id": 7},
        "`end_id` and `forbidden_ids` must be below the vocabulary size of the logits. "
        "Received: end_id=7, forbidden_ids=(), vocabulary=5.",
    ),
    (
        {"state": {"hypothesis": None}},
        'The state must be a dict of "source" and "hypothesis". Received: state=[\'hypothesis\'].',
    ),
    (
        {"state": {"source": None, "hypothesis": None}},
        "The state must contain a tensor with one row per source. Received: shapes=[].",
    ),
    (
        {"state": {"source": None, "hypothesis": np.float32(3)}},
        "The state must contain a tensor with one row per source. Received: shapes=[()].",
    ),
    (
        {"state": {"source": None, "hypothesis": [np.zeros((3, 2)), np.zeros((6,))]}},
        'The tensors of `state["hypothesis"]` must have one row per source. '
        "Received: shapes=[(3, 2), (6,)].",
    ),
]
BEAM = [
    ({"beams": 0}, "`beams` must be a positive integer. Received: beams=0."),
    ({"n_best": 0}, "`n_best` must be a positive integer. Received: n_best=0."),
    ({"n_best": 3}, "`n_best` must not exceed `beams`. Received: n_best=3, beams=2."),
]
CASES = [(strategy, *case) for strategy in (beam_search, greedy_search) for case in BOTH]
CASES += [(beam_search, *case) for case in BEAM]


@pytest.mark.parametrize(("strategy", "options", "message"), CASES)
def test_mistakes_are_told_in_one_line(strategy, options, message):
    with pytest.raises(UserError) as raised:
        search(strategy, **options)
    assert str(raised.value) == message


@pytest.mark.parametrize("strategy", [beam_search, greedy_search])
def test_a_step_that_changes_the_structure_of_its_state(strategy):
    def step(token_ids, state, index):
        logits, state = MODEL.step(token_ids, state, index)
        del state["hypothesis"]["hash"]
        return logits, state

    expected = "^`step` must return a state of the structure it received. Received: .*(hash|arity)"
    with pytest.raises(UserError, match=expected) as raised:
        search(strategy, step=step)
    assert "\n" not in str(raised.value)


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
    received = ops.convert_to_numpy(length_normalizer(lengths, 2.0))
    np.testing.assert_allclose(received, [1, 4, 9], rtol=1e-6)
    received = ops.convert_to_numpy(length_normalizer(7, 0.6))
    np.testing.assert_allclose(received, 1.515717, rtol=1e-6)
    received = ops.convert_to_numpy(length_normalizer(lengths, 0.0))
    np.testing.assert_array_equal(received, [1, 1, 1])

"""Padding that stands before or between tokens, and searches that are longer than their state."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.generation import Constraints, beam_search, greedy_search, sample
from keras_attn.models import GPT2, Transformer
from keras_attn.validation import UserError
from tests.backends import named, quick
from tests.generation import naive_search
from tests.generation.comparison import as_numpy, assert_same_hypotheses, listed
from tests.generation.toy_models import compiled
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models import families
from tests.models import test_language_models as lm
from tests.refusals import refused

# The prompts and sources that are elsewhere padded behind: before, and between.
BEFORE = np.array([[0, 1, 7, 3, 9, 5], [0, 0, 0, 0, 1, 6], [0, 0, 0, 0, 0, 1]], "int32")
BETWEEN = np.array([[1, 7, 0, 3, 9, 5], [0, 1, 0, 0, 6, 0], [0, 0, 1, 0, 0, 0]], "int32")
SOURCES_BEFORE = np.array([[0, 5, 7, 3, 9, 2], [0, 0, 0, 4, 6, 2]], "int32")
SOURCES_BETWEEN = np.array([[5, 7, 3, 0, 9, 2], [0, 4, 0, 6, 2, 0]], "int32")
SEQ2SEQ_ON_JAX = ("additive LSTM", "T5", "Marian", "convolutions")


@pytest.mark.parametrize("name", lm.SOME)
def test_prompts_continue_as_their_tokens_alone_do(name):
    model = lm.built(**lm.VARIANTS[name])
    rest = np.random.default_rng(1).integers(1, 11, (3, 2)).astype("int32")
    texts = np.zeros((3, 7), "int32")
    for row, length in enumerate(lm.LENGTHS):
        texts[row, : length + 2] = [*lm.PROMPTS[row, :length], *rest[row]]
    expected, step = numpy(lm.whole_of(model)(texts)), lm.step_of(model)
    prompts = np.concatenate([BEFORE, BETWEEN])
    token_ids, state = compiled(lambda ids: model.prefill(ids, 2))(prompts)
    np.testing.assert_array_equal(numpy(token_ids), [5, 6, 1] * 2)
    for index in range(2):
        logits, state = step(token_ids, state, index)
        right = expected[range(3), np.add(lm.LENGTHS, index - 1)]
        np.testing.assert_allclose(numpy(logits), [*right, *right], atol=3e-5)
        token_ids = ops.convert_to_tensor(np.tile(rest[:, index], 2))


@pytest.mark.parametrize("name", named(families.CASES, SEQ2SEQ_ON_JAX, others=2))
def test_sources_are_read_as_their_tokens_alone_are(name):
    model, target = families.made(name), families.TARGET[:, :2]
    expected = families.logits(model, target=target)
    sources = np.concatenate([SOURCES_BEFORE, SOURCES_BETWEEN])
    state = quick(lambda ids: model.initial_state(ids, 5))(sources)
    for index in range(2):
        logits, state = quick(model.step)(np.tile(target[:, index], 2), state, index)
        np.testing.assert_allclose(numpy(logits), np.tile(expected[:, index], (2, 1)), atol=3e-5)


@pytest.mark.parametrize("room", lm.ROOMS)
@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_a_search_after_left_padded_prompts_equals_one_without_cache(strategy, room):
    model = lm.built(5)
    prompts = np.array([[0, 1, 3, 4], [0, 0, 1, 4]], "int32")

    def search(prompt_ids):
        beams = 28 if strategy == "beam" else 1  # as many as hold every prefix, and one
        start_ids, state = model.prefill(prompt_ids, room and 4, beams)
        if strategy == "greedy":
            return greedy_search(model.step, state, start_ids, lm.END, 4, forbidden_ids=(0,))
        return beam_search(
            model.step, state, 28, start_ids, lm.END, 4, n_best=5, forbidden_ids=(0,)
        )

    found = as_numpy(compiled(search)(ops.convert_to_tensor(prompts)))
    for row, prompt in enumerate(([1, 3, 4], [1, 4])):
        judge = lm.following(model, prompt)
        if strategy == "greedy":
            expected = naive_search.greedy(judge, lm.END, 4, forbidden=(0,))
        else:
            expected = naive_search.enumerate_all(judge, 5, lm.END, 4, 0.6, forbidden=(0,))[:5]
        assert_same_hypotheses(listed(found, row), expected)


def test_left_padded_prefixes_begin_what_is_generated():
    model = families.made("Marian")

    def search(prefix_ids):
        state, options = model.initial_state(families.SOURCE, 5), {"forbidden_ids": (0,)}
        constraints = Constraints(prefix_ids=prefix_ids)
        return greedy_search(
            model.step, state, lm.START, lm.END, 5, constraints=constraints, **options
        )

    prefixes = ([[7, 4, 0], [9, 0, 0]], [[0, 7, 4], [0, 0, 9]])
    right, found = (as_numpy(compiled(search)(np.array(ids, "int32"))) for ids in prefixes)
    assert right.token_ids[:, 0, 0].tolist() == [7, 9]
    for row in range(2):
        assert_same_hypotheses(listed(found, row), listed(right, row))


def searches(model, state, start_ids, max_length):
    yield lambda: greedy_search(model.step, state, start_ids, lm.END, max_length)
    yield lambda: beam_search(model.step, state, 1, start_ids, lm.END, max_length)
    yield lambda: sample(model.step, state, start_ids, lm.END, max_length, seed=1)


ROOMY = {
    **{name: lambda given=given: lm.built(**given) for name, given in lm.VARIANTS.items()},
    "T5": lambda: families.made("T5"),
    "Marian": lambda: families.made("Marian"),
    "convolutions": lambda: families.made("convolutions"),
}


@pytest.mark.parametrize("name", named(ROOMY, (*lm.ON_JAX, "T5", "Marian", "convolutions"), 4))
def test_a_search_longer_than_its_state_is_refused(name):
    model = ROOMY[name]()
    if name in lm.VARIANTS:
        start_ids, state = model.prefill(lm.PROMPTS, 4)
    else:
        start_ids, state = lm.START, model.initial_state(families.SOURCE, 4)
    for search in searches(model, state, start_ids, 5):
        refused(r"room for all tokens .* max_length=5, room=4\.", search)
    assert len(list(searches(model, state, start_ids, 4))) == 3
    as_numpy(next(searches(model, state, start_ids, 4))())


def test_positions_of_the_model_are_room_too():
    model = GPT2(11, max_length=7, **lm.SIZES)
    start_ids, state = model.prefill(lm.PROMPTS, 3)
    assert state["source"]["room"].shape == (3,)
    if len(lm.ROOMS) > 1:  # caches that grow
        start_ids, state = model.prefill(lm.PROMPTS)
    refused("max_length=4, room=3", greedy_search, model.step, state, start_ids, lm.END, 4)
    state = Transformer(11, learned_positions=5, **lm.SIZES).initial_state(families.SOURCE, 9)
    refused("max_length=6, room=5", greedy_search, None, state, lm.START, lm.END, 6)


@pytest.mark.parametrize("name", ["post-norm", "linear", "GPT-2", "Marian", "convolutions"])
@pytest.mark.parametrize("rows", [False, True])
def test_steps_beyond_the_room_are_refused_or_nan(name, rows):
    model = ROOMY[name]()
    if name in lm.VARIANTS:
        token_ids, state = model.prefill(lm.PROMPTS[:2, :4], 4)
    else:
        room = 17 if name == "convolutions" else 4
        token_ids, state = np.array([1, 1], "int32"), model.initial_state(families.SOURCE, room)
    room = state["source"]["room"].shape[0]
    index = np.array([room - 1, room], "int32") if rows else np.int32(room)
    with pytest.raises(UserError, match=rf"beyond the state's room.*index={room}, room={room}"):
        model.step(token_ids, state, index)
    if keras.backend.backend() == "torch":
        return  # where every step is known
    if name == "convolutions" and keras.backend.backend() == "tensorflow":
        return  # where TensorFlow itself refuses the position
    step = compiled(lambda index: model.step(token_ids, state, index)[0])
    found = np.isnan(numpy(step(ops.convert_to_tensor(index)))).any(axis=1)
    assert found.tolist() == ([False, True] if rows else [True, True])
    if not rows:
        assert np.isfinite(numpy(step(ops.convert_to_tensor(index - 1)))).all()


@pytest.mark.tensorflow
def test_a_search_of_unknown_length_never_gives_wrong_tokens():
    """What is no longer than the state is right; beyond it there is no hypothesis."""
    import tensorflow as tf

    model = lm.built()

    def search(max_length):
        start_ids, state = model.prefill(lm.PROMPTS, 4)
        return greedy_search(model.step, state, start_ids, lm.END, max_length, min_length=3)

    run = tf.function(search, input_signature=[tf.TensorSpec((), "int32")], autograph=False)
    right = as_numpy(search(4))
    for found, expected in zip(as_numpy(run(4)), right, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = as_numpy(run(7))
    ended = found.lengths[:, 0] > 0
    assert not ended.all()
    assert (found.lengths[ended] <= 4).all()
    assert (found.scores[~ended] == -np.inf).all()


def test_a_prompt_must_have_a_token():
    with pytest.raises(UserError, match="at least one token; .*`initial_state`. .* prompts=0"):
        lm.built().prefill(np.zeros((2, 0), "int32"), 4)


def test_a_row_of_padding_alone_changes_no_other():
    model = spread_weights(GPT2(11, max_length=13, **lm.SIZES))

    def search(prompt_ids):
        start_ids, state = model.prefill(prompt_ids, 5)
        return greedy_search(model.step, state, start_ids, lm.END, 5)

    prompts = ([[1, 6, 3]], [[1, 6, 3], [0, 0, 0]])
    right, found = (as_numpy(compiled(search)(np.array(ids, "int32"))) for ids in prompts)
    assert_same_hypotheses(listed(found, 0), listed(right, 0))

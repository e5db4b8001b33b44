import itertools

import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search, greedy_search
from tests.backends import thinned
from tests.generation import naive_search
from tests.generation.comparison import as_numpy, assert_judged, assert_same_hypotheses, listed
from tests.generation.toy_models import END, START, HashModel, RecurrentModel, compiled


def searcher(model, beams, max_length, **options):
    """A compiled function of the model's inputs; one trace for every shape of theirs."""

    def run(inputs):
        state = model.initial_state(inputs)
        return beam_search(model.step, state, beams, START, END, max_length, **options)

    run = compiled(run)
    return lambda inputs: as_numpy(run(inputs))


def search(model, inputs, beams, max_length, **options):
    return searcher(model, beams, max_length, **options)(inputs)


@pytest.mark.parametrize(
    ("alpha", "vocabulary", "max_length", "models"),
    [(0.0, 5, 5, 211), (0.6, 5, 5, 211), (1.0, 5, 5, 211), (0.6, 3, 4, 53)],
)
def test_wide_beam_finds_the_best_of_all_sequences(alpha, vocabulary, max_length, models):
    model, n_best = HashModel(vocabulary), 7
    tables = model.random_tables(np.random.default_rng(vocabulary), models, end_bonus=-0.5)
    # Room for every prefix that has not ended.
    beams = (vocabulary - 1) ** (max_length - 1)
    found = search(model, tables, beams, max_length, length_penalty=alpha, n_best=n_best)
    early = 0
    for row, table in enumerate(tables):
        judge = model.following(table)
        judged = naive_search.enumerate_all(judge, vocabulary, END, max_length, alpha)
        assert_same_hypotheses(listed(found, row), judged[:n_best])
        early += len(judged[0][2]) < max_length
    assert 0.3 * models <= early < models


def test_wide_beam_finds_the_best_of_a_recurrent_network():
    rng = np.random.default_rng(17)
    model = RecurrentModel(rng, vocabulary=5)
    sources = (2 * rng.normal(size=(19, 7))).astype("float32")
    found = search(model, sources, 64, 4, length_penalty=0.8, n_best=5)
    assert_judged(
        found,
        sources,
        lambda source: naive_search.enumerate_all(model.following(source), 5, END, 4, 0.8)[:5],
    )


def test_sequences_of_exactly_one_length():
    model = HashModel(4)
    tables = model.random_tables(np.random.default_rng(3), 11)
    found = search(model, tables, 27, 4, min_length=4, n_best=27)
    for row, table in enumerate(tables):
        judged = naive_search.enumerate_all(model.following(table), 4, END, 4, 0.6, shortest=4)
        assert len(judged) == 27
        assert_same_hypotheses(listed(found, row), judged)


NARROW = [
    {"beams": 1, "alpha": 0.0},
    {"beams": 1, "alpha": 0.6},
    {"beams": 2, "alpha": 0.6, "n_best": 2},
    {"beams": 3, "alpha": 0.0, "n_best": 2},
    {"beams": 3, "alpha": 1.0, "n_best": 1, "shortest": 4},
    {"beams": 4, "alpha": 0.6, "n_best": 4, "forbidden": (0, 1)},
    {"beams": 4, "alpha": 2.5, "n_best": 3, "shortest": 3, "forbidden": (4,)},
    {"beams": 2, "alpha": 0.6, "n_best": 2, "shortest": 9},
]


@pytest.mark.parametrize("setting", thinned(NARROW), ids=str)
def test_narrow_beam_equals_plain_python(setting):
    model, max_length = HashModel(7), 9
    tables = model.random_tables(np.random.default_rng(29), 101, end_bonus=-0.5)
    renamed = {"shortest": "min_length", "alpha": "length_penalty", "forbidden": "forbidden_ids"}
    options = {renamed.get(name, name): value for name, value in setting.items()}
    found = search(model, tables, max_length=max_length, **options)
    positions = []
    for row, table in enumerate(tables):
        judge = model.following(table)
        to_the_end, _ = naive_search.beam(judge, END, longest=max_length, **setting)
        assert_same_hypotheses(listed(found, row), to_the_end)
        stopped, reached = naive_search.beam(
            judge, END, longest=max_length, stop_early=True, **setting
        )
        assert stopped == to_the_end
        positions.append(reached)
    if setting["alpha"] <= 1 and setting.get("shortest", 0) < max_length:
        assert min(positions) < max_length


def test_scores_are_those_of_the_model_stepped_over_the_tokens():
    model, max_length, n_best = HashModel(11), 6, 3
    tables = model.random_tables(np.random.default_rng(5), 13)
    found = search(model, tables, 4, max_length, length_penalty=0.7, n_best=n_best)
    state = model.initial_state(ops.convert_to_tensor(np.repeat(tables, n_best, axis=0)))
    texts = found.token_ids.reshape(-1, max_length)
    previous = np.full(len(texts), START, "int32")
    totals, ended = np.zeros(len(texts)), np.zeros(len(texts), bool)
    for position in range(max_length):
        logits, state = model.step(ops.convert_to_tensor(previous), state, position)
        logits = ops.convert_to_numpy(logits).astype("float64")
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        previous = texts[:, position]
        chosen = np.log(probabilities[np.arange(len(texts)), previous])
        totals += np.where(ended, 0, chosen)
        ended |= previous == END
    assert ended.all()
    np.testing.assert_allclose(found.log_probabilities.reshape(-1), totals, rtol=1e-5)
    lengths = (texts == END).argmax(axis=1) + 1
    np.testing.assert_array_equal(found.lengths.reshape(-1), lengths)
    scores = totals / ((5 + lengths) / 6) ** 0.7
    np.testing.assert_allclose(found.scores.reshape(-1), scores, rtol=1e-5)
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_a_batch_equals_its_sources_one_by_one():
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(7), 5)
    tables[0, :, END] += 9  # ends at once
    tables[1, :, END] -= 30  # never ends by itself
    tables[2] *= 0.01  # every token about as probable
    tables[3, :, END] = -np.inf  # cannot end, so has no hypothesis
    run = searcher(model, 3, 8, n_best=3)
    together = run(tables)
    for row in range(len(tables)):
        assert_same_hypotheses(listed(run(tables[row : row + 1]), 0), listed(together, row))
    assert len(listed(together, 0)[0][2]) == 1
    assert len(listed(together, 1)[0][2]) == 8
    assert listed(together, 3) == []


def test_source_state_keeps_its_rows():
    model, seen = HashModel(5), []

    def step(token_ids, state, index):
        seen.append((state["source"]["steps"].shape[0], state["source"]["table"].shape[0]))
        seen.append(token_ids.shape[0] // 4)
        seen.append(state["hypothesis"]["hash"].shape[0] // 4)
        return model.step(token_ids, state, index)

    tables = model.random_tables(np.random.default_rng(7), 3)
    run = compiled(lambda tables: beam_search(step, model.initial_state(tables), 4, START, END, 6))
    run(tables)
    assert set(seen) == {(3, 3), 3}


def test_beam_of_one_is_at_least_as_good_as_greedy():
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(13), 97, spread=0.8)

    def run(tables):
        state = model.initial_state(tables)
        arguments = (START, END, 5)
        forced = {"min_length": 5}
        return (
            greedy_search(model.step, state, *arguments),
            beam_search(model.step, state, 1, *arguments, length_penalty=0.0),
            greedy_search(model.step, state, *arguments, **forced),
            beam_search(model.step, state, 1, *arguments, length_penalty=0.0, **forced),
        )

    greedy, beam, forced_greedy, forced_beam = map(as_numpy, compiled(run)(tables))
    assert (beam.scores >= greedy.scores - 1e-6).all()
    # The finished set remembers an early end that greedy search passed by.
    assert (beam.scores > greedy.scores + 1e-3).any()
    np.testing.assert_array_equal(forced_beam.token_ids, forced_greedy.token_ids)
    np.testing.assert_allclose(forced_beam.scores, forced_greedy.scores, rtol=1e-6)


def fixed_model(probabilities):
    """The same next-token probabilities whatever came before, for batch 1."""
    with np.errstate(divide="ignore"):
        logits = np.log(np.asarray(probabilities, "float32"))

    def step(token_ids, state, index):
        return ops.convert_to_tensor(logits)[None] + 0.0 * state["hypothesis"][:, None], state

    return step, {"source": None, "hypothesis": ops.zeros((1,))}


def test_by_hand():
    # With p(end) = 1/2 and p(3) = 1/2 the text of n tokens has probability 2**-n; the length
    # penalty of 7 tokens is 2**alpha, and with alpha = 2 (n / ((5 + n) / 6)**2) * log 2 falls
    # from n = 5 on: 1, 1.469, 1.6875, 1.778, 1.8, 1.785, 1.75.
    step, state = fixed_model([0, 0, 0.5, 0.5])
    found = as_numpy(beam_search(step, state, 2, START, END, 7, length_penalty=2.0, n_best=2))
    assert listed(found, 0)[0][2] == (2,)
    np.testing.assert_allclose(found.scores[0, 0], np.log(0.5), rtol=1e-6)
    assert listed(found, 0)[1][2] == (3, 2)
    np.testing.assert_allclose(found.scores[0, 1], 2 * np.log(0.5) * 36 / 49, rtol=1e-6)
    longer = as_numpy(
        beam_search(step, state, 2, START, END, 7, min_length=5, length_penalty=2.0, n_best=2)
    )
    # The end token is certain at no position, yet the only one offered at the last.
    assert [text for _, _, text in listed(longer, 0)] == [(3,) * 6 + (2,), (3,) * 5 + (2,)]
    np.testing.assert_allclose(longer.scores[0, 0], 7 * np.log(0.5) / 4, rtol=1e-6)


def test_fewer_hypotheses_than_asked_for():
    step, state = fixed_model([0, 0, 0.75, 0.25])
    found = as_numpy(beam_search(step, state, 5, START, END, 2, length_penalty=0.0, n_best=5))
    assert [text for _, _, text in listed(found, 0)] == [(2,), (3, 2)]
    np.testing.assert_allclose(np.exp(found.scores[0, :2]), [0.75, 0.1875], rtol=1e-6)
    assert found.token_ids[0, 2:].tolist() == [[0, 0]] * 3


def test_no_hypothesis_where_nothing_has_a_probability():
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(1), 3)
    run = searcher(model, 2, 4, n_best=2)
    expected = run(tables)
    for value in (-np.inf, np.nan):
        tables[1] = value
        found = run(tables)
        assert [len(listed(found, row)) for row in range(3)] == [2, 0, 2]
        for row in (0, 2):
            assert listed(found, row) == listed(expected, row)


def test_tokens_without_a_probability():
    model, rng = HashModel(5), np.random.default_rng(31)
    tables = model.random_tables(rng, 61)
    tables[rng.random(tables.shape) < 0.4] = -np.inf
    # After some texts the model breaks down, which must not touch the other texts.
    tables[rng.random(tables.shape[:2]) < 0.1, 3] = np.nan
    found = search(model, tables, 256, 5, n_best=6)
    counts = []
    for row, table in enumerate(tables):
        judged = naive_search.enumerate_all(model.following(table), 5, END, 5, 0.6)
        assert_same_hypotheses(listed(found, row), judged[:6])
        counts.append(len(judged))
    assert min(counts) < 6 < max(counts)


def test_a_vocabulary_of_the_end_token_alone():
    step, state = fixed_model([1.0])
    found = as_numpy(beam_search(step, state, 3, 0, 0, 4, n_best=3))
    assert found.lengths.tolist() == [[1, 0, 0]]
    np.testing.assert_array_equal(found.scores, [[0, -np.inf, -np.inf]])


def test_forbidden_tokens_never_appear_and_keep_their_probability():
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(37), 23)
    found = search(model, tables, 16, 4, forbidden_ids=(0, START), n_best=5, length_penalty=0.0)
    for row, table in enumerate(tables):
        assert not {0, START} & set(itertools.chain(*(t for _, _, t in listed(found, row))))
        judge = model.following(table)
        judged = naive_search.enumerate_all(judge, 5, END, 4, 0.0, forbidden=(0, START))
        assert_same_hypotheses(listed(found, row), judged[:5])


def test_ties_go_to_the_earlier_end_the_better_parent_and_the_lower_token():
    step, state = fixed_model([0.2] * 5)
    found = as_numpy(beam_search(step, state, 4, START, END, 3, length_penalty=1.0, n_best=4))
    # Eight candidates at the second position: five of parent 0, then tokens 0, 1, 2 of parent 1.
    assert [text for _, _, text in listed(found, 0)] == [(2,), (0, 2), (1, 2), (0, 0, 2)]
    judged, _ = naive_search.beam(lambda prefix: [np.log(0.2)] * 5, END, 4, 3, 1.0, n_best=4)
    assert_same_hypotheses(listed(found, 0), judged)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scores_of_narrow_logits_are_computed_in_float32(dtype):
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(41), 7)
    rounded = ops.convert_to_numpy(ops.cast(ops.cast(tables, dtype), "float32"))

    def step(token_ids, state, index):
        logits, state = model.step(token_ids, state, index)
        return ops.cast(logits, dtype), state

    run = compiled(lambda x: beam_search(step, model.initial_state(x), 3, START, END, 5))
    found = as_numpy(run(tables))
    assert found.scores.dtype == found.log_probabilities.dtype == np.float32
    assert found.token_ids.dtype == found.lengths.dtype == np.int32
    assert_judged(
        found, rounded, lambda table: naive_search.beam(model.following(table), END, 3, 5, 0.6)[0]
    )

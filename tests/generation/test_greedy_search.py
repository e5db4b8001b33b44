import numpy as np
import pytest
from keras import ops

from keras_attn.generation import greedy_search
from tests.generation import naive_search
from tests.generation.comparison import as_numpy, assert_judged, searched
from tests.generation.toy_models import END, START, HashModel, RecurrentModel, compiled


@pytest.mark.parametrize(
    ("shortest", "longest", "forbidden"), [(0, 7, ()), (3, 7, (0, 1)), (7, 7, (4,)), (0, 1, ())]
)
def test_equals_plain_python(shortest, longest, forbidden):
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(43), 103)
    tables[0] = -np.inf
    tables[1] = np.nan
    tables[2, :, END] = -np.inf
    options = {"min_length": shortest, "forbidden_ids": forbidden}
    found = searched(greedy_search, model, tables, START, END, longest, **options)
    assert found.token_ids.shape == (103, 1, longest)
    rules = (longest, shortest, forbidden)
    assert_judged(
        found, tables, lambda table: naive_search.greedy(model.following(table), END, *rules)
    )
    assert not found.lengths[:3].any()
    if shortest < longest > 1:
        assert found.lengths[3:].min() < longest
        assert found.lengths[3:].max() == longest


def test_follows_nested_states():
    rng = np.random.default_rng(47)
    sources = (2 * rng.normal(size=(23, 5))).astype("float32")
    model = RecurrentModel(rng, vocabulary=7, units=5)
    found = as_numpy(greedy_search(model.step, model.initial_state(sources), START, END, 6))
    assert_judged(
        found, sources, lambda source: naive_search.greedy(model.following(source), END, 6)
    )


def test_length_penalty_changes_the_score_alone():
    model = HashModel(5)
    tables = ops.convert_to_tensor(model.random_tables(np.random.default_rng(53), 7))
    plain, divided = (
        searched(greedy_search, model, tables, START, END, 7, **options)
        for options in ({}, {"length_penalty": 0.9})
    )
    np.testing.assert_array_equal(divided.token_ids, plain.token_ids)
    np.testing.assert_allclose(plain.scores, plain.log_probabilities)
    penalty = ((5 + plain.lengths) / 6) ** 0.9
    np.testing.assert_allclose(divided.scores, plain.scores / penalty, rtol=1e-6)


def test_what_the_model_does_after_the_end_is_ignored():
    """A model whose logits are NaN once the end token has been fed."""
    model = HashModel(5)
    tables = model.random_tables(np.random.default_rng(59), 29)

    def step(token_ids, state, index):
        logits, state = model.step(token_ids, state, index)
        return ops.where((token_ids == END)[:, None], np.nan, logits), state

    run = compiled(lambda x: greedy_search(step, model.initial_state(x), START, END, 7))
    found = as_numpy(run(tables))
    assert len(set(found.lengths.ravel().tolist())) > 3
    assert_judged(found, tables, lambda table: naive_search.greedy(model.following(table), END, 7))

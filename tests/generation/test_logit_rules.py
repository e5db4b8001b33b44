import numpy as np
import pytest
from keras import ops

from keras_attn.generation import logit_rules
from keras_attn.generation.token_rules import token_set
from tests.backends import thinned
from tests.harness import numpy

INF = np.inf


def logs(*probabilities):
    with np.errstate(divide="ignore"):
        return ops.convert_to_tensor(np.log(np.array(probabilities, "float32")))


def kept(logits):
    """Of each row the tokens that are left."""
    return [np.flatnonzero(row > -INF).tolist() for row in numpy(logits)]


def test_repetition_penalty_by_hand():
    logits = ops.convert_to_tensor([[3.0, -3.0, 0.0, 6.0, -INF]])
    seen = ops.convert_to_tensor([[True, True, True, False, True]])
    found = logit_rules.penalize_repetition(logits, seen, 1.5)
    np.testing.assert_allclose(numpy(found), [[2, -4.5, 0, 6, -INF]])


def test_temperature_by_hand():
    logits = ops.convert_to_tensor([[3.0, -5.0], [3.0, -5.0]])
    found = logit_rules.divide_by_temperature(logits, ops.convert_to_tensor([0.5, 2.0]))
    np.testing.assert_allclose(numpy(found), [[6, -10], [1.5, -2.5]])
    found = logit_rules.divide_by_temperature(logits, 4)
    np.testing.assert_allclose(numpy(found), [[0.75, -1.25]] * 2)


# Probabilities in eighths, which float32 sums exactly.
ROW = (0.125, 0.25, 0.0, 0.25, 0.25, 0.125, 0.0)


# The most probable first, of equal ones the first.
ORDER = [1, 3, 4, 0, 5]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 0, 11])
def test_top_k_keeps_the_first_of_equal_tokens(k):
    expected = sorted(ORDER[: k or None])
    logits = logs(ROW)
    assert kept(logit_rules.keep_top_k(logits, k)) == [expected]
    assert kept(logit_rules.keep_top_k(logits, ops.convert_to_tensor([k], "int32"))) == [expected]
    left = numpy(logit_rules.keep_top_k(logits, k))[0, expected]
    np.testing.assert_array_equal(left, numpy(logits)[0, expected])


# By the number of tokens that reach them, up to the greatest.
REACHED = {1: [1e-9, 0.25], 2: [0.2500001, 0.5], 3: [0.6, 0.75], 4: [0.76, 0.875], 5: [0.9, 1.0]}


@pytest.mark.parametrize(("p", "size"), [(p, size) for size, ps in REACHED.items() for p in ps])
def test_top_p_keeps_the_smallest_set_that_reaches_p(p, size):
    expected = sorted(ORDER[:size])
    logits = logs(ROW)
    assert kept(logit_rules.keep_top_p(logits, p)) == [expected]
    assert kept(logit_rules.keep_top_p(logits, ops.convert_to_tensor([p], "float32"))) == [expected]


@pytest.mark.parametrize("spread", thinned([3.0, 0.1, 6.0], 3))
@pytest.mark.parametrize("p", [0.3, 0.9])
def test_top_p_of_a_large_vocabulary(spread, p):
    """Of a nucleus of a few tokens, of all, and of rows of both kinds."""
    rng = np.random.default_rng(7)
    logits = (rng.normal(size=(5, 1511)) * spread).astype("float32")
    logits[2] *= 0.1 / spread
    for rows in (logits, logits[:2], logits[2:3]):
        found = kept(logit_rules.keep_top_p(ops.convert_to_tensor(rows), p))
        for row, tokens in zip(rows.astype("float64"), found, strict=True):
            probabilities = np.sort(np.exp(row) / np.exp(row).sum())[::-1]
            size = 1 + np.sum(np.cumsum(probabilities) < p)
            assert abs(len(tokens) - size) <= 1  # by rounding
            assert sorted(row[tokens]) == sorted(row)[-len(tokens) :]


def test_top_p_of_one_keeps_what_is_too_rare_for_the_sum():
    logits = ops.convert_to_tensor([[0.0, -30.0, -60.0, -INF]])
    assert kept(logit_rules.keep_top_p(logits, ops.convert_to_tensor([1.0]))) == [[0, 1, 2]]
    assert kept(logit_rules.keep_top_p(logits, 1)) == [[0, 1, 2]]


def test_top_p_counts_the_mass_of_what_top_k_has_kept():
    logits = logs((0.4, 0.3, 0.2, 0.1))
    # Of 0.4 and 0.3 the first has 4/7 of the mass.
    assert kept(logit_rules.keep_top_p(logit_rules.keep_top_k(logits, 2), 0.55)) == [[0]]
    assert kept(logit_rules.keep_top_p(logits, 0.55)) == [[0, 1]]


@pytest.mark.parametrize("k", [0, 1, 3, 7, 11, 13])
@pytest.mark.parametrize("p", [0.01, 0.4, 0.9, 1.0])
def test_both_at_once_are_one_after_the_other(k, p):
    rng = np.random.default_rng(5)
    logits = ops.convert_to_tensor(rng.integers(-2, 3, (17, 11)).astype("float32"))
    expected = kept(logit_rules.keep_top_p(logit_rules.keep_top_k(logits, k), p))
    assert kept(logit_rules.keep_top_k_then_p(logits, k, p)) == expected
    rows = (ops.convert_to_tensor([k] * 17, "int32"), ops.convert_to_tensor([p] * 17, "float32"))
    assert kept(logit_rules.keep_top_k_then_p(logits, *rows)) == expected


def test_rules_for_each_row():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(13, 11)).astype("float32")
    ks, ps = rng.integers(0, 12, 13), rng.uniform(0.1, 1, 13).astype("float32")
    together = (
        logit_rules.keep_top_k(logits, ops.convert_to_tensor(ks, "int32")),
        logit_rules.keep_top_p(logits, ps),
    )
    for row in range(13):
        alone = ops.convert_to_tensor(logits[row : row + 1])
        assert kept(together[0])[row] == kept(logit_rules.keep_top_k(alone, int(ks[row])))[0]
        assert kept(together[1])[row] == kept(logit_rules.keep_top_p(alone, float(ps[row])))[0]


def test_sets_of_tokens():
    token_ids = ops.convert_to_tensor([[3, 0, 3, 1], [4, 4, 2, 0]], "int32")
    counted = ops.convert_to_tensor([[True, False, True, True], [True, True, False, True]])
    found = numpy(token_set(token_ids, counted, 5))
    np.testing.assert_array_equal(found, np.array([[0, 1, 0, 1, 0], [1, 0, 0, 0, 1]], bool))


@pytest.mark.parametrize("columns", [1, 2, 7, 29])
def test_draws_partition_the_unit_square_by_the_probabilities(columns):
    """Of a fine grid of uniform numbers each token gets its share, up to the grid's spacing."""
    rng = np.random.default_rng(columns)
    logits = rng.normal(size=columns).astype("float32") * 2
    logits[rng.random(columns) < 0.3] = -INF
    logits[0] = 0.5
    grid = (np.arange(499) + 0.5) / 499
    uniforms = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2).astype("float32")
    rows = np.broadcast_to(logits, (len(uniforms), columns))
    found = numpy(logit_rules.draw_columns(ops.convert_to_tensor(rows), uniforms))
    shares = np.bincount(found, minlength=columns) / len(found)
    expected = np.exp(logits) / np.exp(logits).sum()
    assert found.dtype == np.int32
    assert (shares[logits == -INF] == 0).all()
    np.testing.assert_allclose(shares, expected, atol=2 / 499)


def test_draws_of_the_outermost_numbers():
    logits = ops.convert_to_tensor([[-INF, 0.0, -INF, 1.0, -INF]] * 2)
    last = 1 - 2.0**-24
    uniforms = ops.convert_to_tensor(np.array([[0, 0], [last, last]], "float32"))
    assert numpy(logit_rules.draw_columns(logits, uniforms)).tolist() == [1, 3]


def test_rare_tokens_keep_their_share_in_a_large_vocabulary():
    """49,999 tokens share 0.25% of the mass, which sums one by one would get wrong."""
    logits = np.full((1, 50_000), np.log(5e-8), "float32")
    logits[0, 0] = np.log(0.9975)
    top = np.linspace(0.997, 1, 3001, endpoint=False, dtype="float32")
    uniforms = np.stack([top, np.full_like(top, 0.9)], axis=1)
    rows = np.broadcast_to(logits, (3001, 50_000))
    found = np.concatenate(
        [
            numpy(logit_rules.draw_columns(ops.convert_to_tensor(part), numbers))
            for part, numbers in zip(
                np.array_split(rows, 30), np.array_split(uniforms, 30), strict=True
            )
        ]
    )
    assert np.mean(found > 255) == pytest.approx(0.0025 / 0.003, abs=0.01)

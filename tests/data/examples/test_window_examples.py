"""Windows of series, compared with loops over the steps."""

import numpy as np
import pytest

from keras_attn.data.examples.window import WindowExamples
from keras_attn.data.series.memory import read_given
from keras_attn.data.series.series import SeriesPart, cut_before
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

CONTEXT, HORIZON = 7, 3
COLUMNS = {"target": ["x", "y"], "unknown": ["u"], "known": ["k"], "series": "name"}
DRAW = np.random.default_rng(4)


def made_part():
    rows = [
        {"name": name, **dict(zip("xyuk", values, strict=True))}
        for name, steps in (("a", 23), ("b", 17))
        for values in DRAW.normal(50, 5, (steps, 4)).tolist()
    ]
    rows[11]["x"] = None
    return SeriesPart.whole(read_given(rows, COLUMNS))


PART = made_part()


def brute_force(part, least):
    """Past, future and targets of every window, one after the other."""
    found = []
    for values, begin, end in zip(part.table.values, part.begins, part.ends, strict=True):
        for origin in range(max(begin, least), end - HORIZON + 1):
            past = np.full((CONTEXT, 4), np.nan)
            for step in range(CONTEXT):
                place = origin - CONTEXT + step
                if place >= 0:
                    past[step] = values[place]
            mean, deviation = np.nanmean(past[:, :3], axis=0), np.nanstd(past[:, :3], axis=0)
            past[:, :3] = (past[:, :3] - mean) / deviation
            ahead = values[origin : origin + HORIZON]
            found.append((past, ahead[:, 3:], (ahead[:, :2] - mean[:2]) / deviation[:2]))
    return [np.stack(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize("least", [2, 9])
def test_windows_are_those_of_a_loop(least):
    earlier, later = cut_before(PART, np.array([6, 5]))
    for part in (PART, earlier, later):
        examples = WindowExamples.from_part(part, CONTEXT, HORIZON, least=least)
        inputs, labels = examples.assemble(np.arange(len(examples)))
        past, future, targets = brute_force(part, least)
        np.testing.assert_allclose(inputs["past"], past, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(inputs["future"], future, rtol=1e-6)
        np.testing.assert_allclose(labels, targets, rtol=1e-4, atol=1e-4)


def test_no_window_of_a_part_forecasts_another_part():
    earlier, later = cut_before(PART, np.array([6, 5]))
    np.testing.assert_array_equal(earlier.ends, later.begins)
    series, begins = earlier.origins(HORIZON, 1)
    assert (begins + HORIZON <= later.begins[series]).all()
    series, begins = later.origins(HORIZON, 1)
    assert (begins >= earlier.ends[series]).all()
    assert len(earlier) + len(later) == len(PART)


def test_series_without_a_window_are_counted():
    rows = [{"name": name, "y": n} for name, steps in (("a", 9), ("b", 5)) for n in range(steps)]
    part = SeriesPart.whole(read_given(rows, {"target": ["y"], "series": "name"}))
    assert WindowExamples.from_part(part, 4, HORIZON, least=2).notes == ()
    (note,) = WindowExamples.from_part(part, 4, HORIZON, least=3).notes
    assert note == "1 of 2 series have no window of 3 steps and a horizon of 3 to learn from"


def test_padding_has_no_labels():
    examples = WindowExamples.from_part(PART, CONTEXT, HORIZON, tokens=5)
    inputs, labels = examples.assemble([0, 3], (4, 5))
    assert np.isnan(labels[2:]).all()
    assert not np.isnan(labels[:2]).all()
    assert not inputs["past"][2:].any()
    refused("must hold the batch", examples.assemble, [0, 3], (1, 5))


def test_mixtures_are_sums_of_two_windows_that_vary_as_much():
    part = SeriesPart.whole(read_given(DRAW.normal(size=400)))
    usual = {"centers": [0.1], "scales": [1.2]}
    plain = WindowExamples.from_part(part, 50, HORIZON, least=50, mixed=0.5, seed=3, **usual)
    mixed = plain.of_epoch(2)
    rows = np.arange(len(plain))
    (before, targets), (after, labels) = plain.assemble(rows), mixed.assemble(rows)
    partners, first, second = mixed.partners
    np.testing.assert_allclose(first**2 + second**2, 1)
    added = [(after[name], before[name], first, second) for name in ("past", "center")]
    variances = (after["scale"] ** 2, before["scale"] ** 2, first**2, second**2)
    for found, one, *weights in (*added, (labels, targets, first, second), variances):
        weights = [np.reshape(each, [-1] + [1] * (one.ndim - 1)) for each in weights]
        expected = weights[0] * one + weights[1] * one[partners]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert 0.4 < np.mean(second != 0) < 0.6
    assert after["past"].std() == pytest.approx(1, abs=0.05)
    for other, same in ((plain.of_epoch(2), True), (plain.of_epoch(3), False)):
        assert np.array_equal(other.assemble(rows)[1], labels) == same


def test_windows_without_common_values_are_not_mixed():
    values = DRAW.normal(size=60)
    values[20:26] = np.nan  # contexts of 8 that end and begin there have no value in common
    part = SeriesPart.whole(read_given(values))
    plain = WindowExamples.from_part(part, 8, HORIZON, least=4, mixed=1.0)
    rows = np.arange(len(plain))
    (before, _), alone = plain.assemble(rows), 0
    for epoch in range(9):
        mixed = plain.of_epoch(epoch)
        past = mixed.assemble(rows)[0]["past"][..., 0]
        assert ((~np.isnan(past)).sum(axis=1) >= 2).all()
        partners = mixed.partners[0]
        common = ~np.isnan(before["past"] + before["past"][partners])[..., 0]
        few = common.sum(axis=1) < 2
        np.testing.assert_array_equal(past[few], before["past"][few, :, 0])
        alone += few.sum()
    assert alone > 0


def test_constant_contexts_and_windows_without_a_target_are_left_out():
    values = np.concatenate([np.full(12, 3.0), np.arange(9.0), np.full(9, np.nan), [1.0, 2.0]])
    part = SeriesPart.whole(read_given(values))
    examples = WindowExamples.from_part(part, 4, 2)
    pasts = [values[begin - 4 : begin] for begin in range(4, len(values) - 1)]
    usable = [
        np.nanstd(past) > 0 and not np.isnan(values[begin : begin + 2]).all()
        if not np.isnan(past).all()
        else False
        for begin, past in enumerate(pasts, 4)
    ]
    assert len(examples) == sum(usable)
    constant = SeriesPart.whole(read_given(np.full(20, 3.0)))
    refused("no window of 1 steps and a horizon of 2", WindowExamples.from_part, constant, 4, 2)

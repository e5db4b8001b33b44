"""The forecaster: its scale, its missing values, its linear part, its quantiles."""

import numpy as np
import pytest
from keras import ops

from keras_attn.layers.attention.registry import ATTENTION, named_attention
from keras_attn.models import Forecaster
from tests.layers.judges import spread_weights
from tests.refusals import refusals

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
LEVELS = (0.1, 0.5, 0.7)
CONTEXT, HORIZON = 7, 5
DRAW = np.random.default_rng(6)
PAST = DRAW.normal(size=(3, CONTEXT, 5)).astype("float32")
FUTURE = DRAW.normal(size=(3, HORIZON, 2)).astype("float32")


def made(weights=True, **options):
    options = {"targets": 2, "unknown": 1, "known_scales": [2.0, 3.0], "patch_length": 2} | options
    model = Forecaster(CONTEXT, HORIZON, quantiles=LEVELS, **SIZES | options)
    return spread_weights(model) if weights else model


def forecast(model, past=PAST, future=FUTURE):
    return ops.convert_to_numpy(model({"past": past, "future": future}))


def test_it_begins_with_the_mean_of_the_context():
    past = PAST.copy()
    past[0, :4, 0] = np.nan
    found = forecast(made(weights=False), past)
    assert found.shape == (3, HORIZON, 2, 3)
    expected = np.nanmean(past[..., :2], axis=1)
    np.testing.assert_allclose(
        found, np.broadcast_to(expected[:, None, :, None], found.shape), rtol=1e-5
    )


def test_level_and_scale_of_the_targets_do_not_matter():
    model, past = made(), PAST.copy()
    past[..., :3] = 40 * past[..., :3] + 700
    np.testing.assert_allclose(forecast(model, past), 40 * forecast(model) + 700, rtol=1e-4)
    # Known covariates count by their difference from the mean of the context.
    moved = PAST + np.array([0, 0, 0, 9, 9], "float32")
    np.testing.assert_allclose(
        forecast(model, moved, FUTURE + 9), forecast(model), rtol=1e-3, atol=1e-3
    )
    assert np.abs(forecast(model, PAST, FUTURE + 1) - forecast(model)).max() > 0.01


def test_the_usual_scale_counts_eight_times_as_much_as_that_of_the_context():
    model = made(weights=False, centers=[3.0, 4.0], scales=[2.0, 0.5])
    model.get_layer("spread").embeddings.assign(np.tile([[-1.0, 0.0, 2.0] * 2], (HORIZON, 1)))
    own = PAST[..., :2].std(axis=1)
    scale = np.sqrt((own**2 + 8 * np.array([2.0, 0.5]) ** 2) / 9)[:, None, :, None]
    mean = PAST[..., :2].mean(axis=1)[:, None, :, None]
    expected = mean + scale * np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(
        forecast(model), np.broadcast_to(expected, (3, HORIZON, 2, 3)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("names", [("scale",), ("scale", "center")])
def test_with_usual_values_the_unit_does_not_matter(names):
    usual = {"scale": [2.0, 0.5], "center": [3.0, 4.0]}
    usual = {name: usual[name] for name in names}
    model = made(**{f"{name}s": values for name, values in usual.items()})
    past = np.concatenate([40 * PAST[..., :3] + 700, PAST[..., 3:]], axis=-1)
    moved = {
        name: np.array([[40 * value + 700 * (name == "center") for value in values]] * 3)
        for name, values in usual.items()
    }
    found = model({"past": past, "future": FUTURE} | moved)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), 40 * forecast(model) + 700, rtol=1e-4, atol=1e-2
    )


def test_quantiles_increase_and_all_steps_of_the_past_count():
    model = made()
    found = forecast(model)
    assert (np.diff(found, axis=-1) >= 0).all()
    assert np.diff(found, axis=-1).max() > 0
    for step in range(CONTEXT):
        past = PAST.copy()
        past[:, step, 0] += 1
        assert np.abs(forecast(model, past) - found).max() > 1e-3, step


def test_without_blocks_it_is_a_linear_forecast_of_standardized_values():
    model = made(known_scales=[], unknown=0, targets=2, dropout=0.0)
    model.get_layer("output").kernel.assign(model.get_layer("output").kernel * 0)
    model.get_layer("output").bias.assign(model.get_layer("output").bias * 0)
    past = PAST[..., :2]
    mean, deviation = past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True)
    kernel = ops.convert_to_numpy(model.get_layer("linear").kernel)  # (7, 2, horizon, 2)
    spread = ops.convert_to_numpy(model.get_layer("spread").embeddings).reshape(HORIZON, 2, 3)
    middle = np.einsum("bcs,csht->bht", (past - mean) / deviation, kernel)
    expected = np.sort(middle[..., None] + spread, axis=-1) * deviation[..., None] + mean[..., None]
    np.testing.assert_allclose(
        ops.convert_to_numpy(model({"past": past})), expected, rtol=1e-3, atol=1e-3
    )


def test_known_covariates_of_the_context_are_part_of_the_linear_forecast():
    """What a holiday did to the context is taken out of the forecast: -5 for each day of it."""
    model = made(known_scales=[2.0], unknown=0, targets=1, dropout=0.0)
    for weight in model.trainable_variables:
        if weight.path.startswith(("output/", "linear", "spread/")):
            weight.assign(np.zeros(weight.shape))
    kernel = model.get_layer("linear_known").kernel  # (context + horizon, known, horizon, targets)
    weights = np.zeros(kernel.shape, "float32")
    weights[2], weights[CONTEXT + 1, :, 1] = -5.0, 7.0
    kernel.assign(weights)
    past = PAST[:1, :, :2].copy()
    past[..., 1] = 0
    past[0, 2, 1] = 4.0
    future = 0 * FUTURE[:1, :, :1]
    future[0, 1] = 6.0
    found = forecast(model, past, future)
    values, known = past[0, :, 0], past[0, :, 1]
    # Around its mean over the context, in deviations of 2.
    of_known = np.full((1, HORIZON, 1, 1), (known[2] - known.mean()) / 2 * -5.0)
    of_known[0, 1] += (6.0 - known.mean()) / 2 * 7.0
    expected = np.broadcast_to(values.mean() + values.std() * of_known, found.shape)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_constant_and_empty_contexts():
    past = PAST.copy()
    past[0, :, 0], past[1, :, 1] = 5, np.nan
    found = forecast(made(), past)
    np.testing.assert_allclose(found[0, :, 0], 5, rtol=1e-6)
    assert np.isnan(found[1, :, 1]).all()
    assert not np.isnan(found[0]).any()
    assert not np.isnan(found[1, :, 0]).any()


@pytest.mark.parametrize("rows", [1, HORIZON, 3, 9])
def test_a_row_does_not_depend_on_the_number_of_rows(rows):
    # Keras takes a tensor of as many rows as there are steps for a bias.
    model = made(known_scales=[], unknown=0, targets=1)
    past = DRAW.normal(size=(rows, CONTEXT, 1)).astype("float32")
    alone = np.concatenate([ops.convert_to_numpy(model({"past": row[None]})) for row in past])
    np.testing.assert_allclose(
        ops.convert_to_numpy(model({"past": past})), alone, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", ATTENTION)
def test_every_attention(name):
    tokens = -(-CONTEXT // 2) - (-HORIZON // 2)
    attention = named_attention(name, 2, 4, tokens)
    assert np.isfinite(forecast(made(attention=attention))).all()


test_refusals = refusals(
    lambda **options: Forecaster(CONTEXT, HORIZON, **SIZES | options),
    ({"patch_length": 0}, "`patch_length` must be a positive integer. Received: patch_length=0"),
    ({"quantiles": (0.5, 0.1)}, r"increasing numbers .* Received: quantiles=\(0.5, 0.1\)"),
    ({"quantiles": (0.1, 0.9)}, "with 0.5 among them"),
    ({"quantiles": (0.5, 1.0)}, "between 0 and 1"),
    ({"num_heads": 3}, "`num_heads` must divide `hidden_dim`"),
    ({"scales": [1.0, 2.0]}, "`scales` must be positive, one for each target"),
    ({"scales": [0.0]}, r"Received: scales=\[0.0\]"),
    ({"centers": [1.0]}, "`centers` must have one for each of `scales`"),
)

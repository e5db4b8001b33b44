import math

import keras
import numpy as np
import pytest

from keras_attn.training import (
    InverseSquareRoot,
    TransformerSchedule,
    WarmupConstant,
    WarmupCosine,
    make_schedule,
)
from tests.refusals import refused


def rates(schedule, *numbers):
    """Rates of the updates of these numbers, counted from 1."""
    return [float(schedule(number - 1)) for number in numbers]


def test_paper_schedule_of_the_base_model():
    # Equation 3 with d = 512 and 4,000 steps: 1/sqrt(512 * 4000) at the top, half of it after
    # half of the warm-up and again after four times the warm-up.
    top = 1 / math.sqrt(512 * 4000)
    assert top == pytest.approx(6.9877e-4, rel=1e-4)
    schedule = TransformerSchedule(512, 4000)
    np.testing.assert_allclose(
        rates(schedule, 1, 2000, 4000, 16000, 100_000),
        [top / 4000, top / 2, top, top / 2, top / 5],
        rtol=1e-6,
    )
    np.testing.assert_allclose(rates(TransformerSchedule(512, 4000, 2.0), 4000), [2 * top])


def test_inverse_square_root():
    np.testing.assert_allclose(
        rates(InverseSquareRoot(0.3, 25), 1, 25, 100, 2500), [0.012, 0.3, 0.15, 0.03], rtol=1e-6
    )


def test_cosine():
    # Warm-up to update 10; the middle of the cosine at 60, its quarter at 35; the floor from 110.
    schedule = WarmupCosine(1.0, 10, 110, floor=0.2)
    quarter = 0.2 + 0.8 * (0.5 + math.sqrt(2) / 4)
    np.testing.assert_allclose(
        rates(schedule, 1, 10, 35, 60, 110, 500), [0.1, 1, quarter, 0.6, 0.2, 0.2], rtol=1e-6
    )


def test_constant():
    np.testing.assert_allclose(
        rates(WarmupConstant(0.4, 4), 1, 4, 1000), [0.1, 0.4, 0.4], rtol=1e-6
    )
    np.testing.assert_allclose(rates(WarmupConstant(0.4), 1, 1000), [0.4, 0.4], rtol=1e-6)


@pytest.mark.parametrize(
    "schedule",
    [
        TransformerSchedule(13, 7, 2.0),
        InverseSquareRoot(0.3, 7),
        WarmupCosine(0.3, 7, 19, 0.1),
        WarmupConstant(0.3, 7),
    ],
)
def test_schedules_can_be_saved(schedule):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert type(again) is type(schedule)
    assert rates(again, 1, 7, 11, 23) == rates(schedule, 1, 7, 11, 23)
    optimizer = keras.optimizers.Adam(schedule)
    np.testing.assert_allclose(float(optimizer.learning_rate), float(schedule(0)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("transformer", TransformerSchedule),
        ("inverse_square_root", InverseSquareRoot),
        ("cosine", WarmupCosine),
        ("constant", WarmupConstant),
    ],
)
def test_make_schedule(name, kind):
    schedule = make_schedule(name, 0.5, 5, total_steps=29, hidden_dim=64)
    assert type(schedule) is kind
    assert rates(schedule, 5) == pytest.approx(
        [0.5 / math.sqrt(64 * 5)] if name == "transformer" else [0.5]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_schedule("cosin", 1.0, 5), "Did you mean 'cosine'.*schedule='cosin'"),
        (lambda: make_schedule("cosine", 1.0, 5), "total_steps=None"),
        (lambda: make_schedule("transformer", 1.0, 5), "hidden_dim=None"),
        (lambda: WarmupCosine(1.0, 20, 10), "warmup_steps=20, total_steps=10"),
        (lambda: WarmupCosine(1.0, 2, 10, floor=3.0), "floor=3.0, peak=1.0"),
        (lambda: InverseSquareRoot(0.0, 5), "peak=0.0"),
        (lambda: TransformerSchedule(512, 0), "warmup_steps=0"),
        (lambda: WarmupConstant(1.0, -1), "warmup_steps=-1"),
    ],
)
def test_wrong_numbers(call, message):
    refused(message, call)

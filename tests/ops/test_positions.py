import math

import numpy as np
import pytest
from keras import ops

from keras_attn.ops import sinusoidal_positions
from tests.harness import assert_close, assert_same
from tests.refusals import refusals


def formula(position, column, width, base=10_000.0):
    angle = position / base ** ((column - column % 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)


@pytest.mark.parametrize("width", [1, 2, 7, 64])
def test_positions_follow_the_formula(width):
    encoding = ops.convert_to_numpy(sinusoidal_positions(513, width))
    expected = [
        [formula(position, column, width) for column in range(width)] for position in range(513)
    ]
    assert encoding.shape == (513, width)
    assert encoding.dtype == np.float32
    assert_close(encoding, expected, atol=1e-4)


def test_a_number_worked_out_by_hand():
    # Width 4, position 2: sin 2, cos 2, sin(2 / 100), cos(2 / 100).
    row = ops.convert_to_numpy(sinusoidal_positions(3, 4))[2]
    assert_close(row, [0.9092974, -0.4161468, 0.0199987, 0.9998], atol=1e-6)


def test_neighbours_differ_up_to_long_lengths():
    encoding = ops.convert_to_numpy(sinusoidal_positions(5000, 64))
    assert len(np.unique(encoding, axis=0)) == 5000


def test_tensors_of_positions_give_the_same_rows():
    table = ops.convert_to_numpy(sinusoidal_positions(23, 6))
    positions = np.array([[3, 22], [0, 7], [5, 5]], "int32")
    assert_same(sinusoidal_positions(positions, 6), table[positions])
    assert_same(sinusoidal_positions(ops.convert_to_tensor(11, "int32"), 6), table[11])


def test_wavelength_can_be_chosen():
    encoding = ops.convert_to_numpy(sinusoidal_positions(5, 4, max_wavelength=100.0))
    assert encoding[3, 2] == pytest.approx(formula(3, 2, 4, base=100.0), abs=1e-6)


test_errors_name_the_values = refusals(
    sinusoidal_positions,
    ({"positions": 0, "hidden_dim": 4}, "`positions` must be a positive integer.*positions=0"),
    ({"positions": 3, "hidden_dim": -2}, "`hidden_dim` must be a positive.*hidden_dim=-2"),
    (
        {"positions": 3, "hidden_dim": 4, "max_wavelength": 0},
        "`max_wavelength` must be above 0.*max_wavelength=0",
    ),
    (
        {"positions": 3, "hidden_dim": 4, "dtype": "bfloat16"},
        "`dtype` must be float32 or float64.*dtype='bfloat16'",
    ),
)

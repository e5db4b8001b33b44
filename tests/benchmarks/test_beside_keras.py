import pytest

from keras_attn.benchmarks.beside_keras import OPTIONS, beside_keras_table, measure_beside_keras
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


def test_small_layers():
    figures = list(measure_beside_keras([(2, 8, 6, 3)], rounds=1))
    assert [figure["options"] for figure in figures[::2]] == list(OPTIONS)
    assert [figure["backward"] for figure in figures] == [False, True] * 3
    for figure in figures:
        assert figure["speed"] == figure["keras_seconds"] / figure["seconds"]
    lines = beside_keras_table(figures).splitlines()
    assert lines[0].startswith("| rows, length, features | call | forward, ms | Keras | speed |")
    assert lines[2].startswith("| 2, 8, 6 | plain | ")
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("shape", "rounds", "error"),
    [
        ((2, 8, 6, 3), 0, "`rounds` must be a positive integer"),
        ((2, 0, 6, 3), 1, "`length` must be a positive integer"),
        ((2, 8, 6, 4), 1, "Features must be divisible by heads. Received: features=6, heads=4"),
    ],
)
def test_refusals(shape, rounds, error):
    refused(error, lambda: list(measure_beside_keras([shape], rounds)))

import pytest

from keras_attn.benchmarks import complexity
from keras_attn.benchmarks.complexity import LAYER_TYPES, measure_complexity
from keras_attn.benchmarks.growth import (
    attention_table,
    complexity_table,
    draw_attention,
    fitted_exponent,
)
from keras_attn.benchmarks.layer_call import measure
from tests.refusals import refused


def test_a_power_law_is_found():
    assert fitted_exponent([(n, 3 * n**1.5) for n in (2, 4, 32)]) == pytest.approx(1.5)
    assert fitted_exponent([(2, 1.0)]) is None
    assert fitted_exponent([(2, 1.0), (2, 3.0), (4, 0.0)]) is None


def figure(name, length, seconds, megabytes, operations):
    return {
        "operations": operations,
        "mechanism": name,
        "length": length,
        "seconds": seconds,
        "peak_bytes": megabytes * 1_000_000,
    }


FIGURES = [
    figure("dense", 100, 0.5, 10, 3e6),
    figure("dense", 200, 2.0, 40, 6e6 * 2**0.5),
    figure("dense", 200, 1.9, 41, 6e6 * 2**0.5),
    figure("local", 100, 0.25, 10, 1e6),
    {"mechanism": "local", "length": 200, "error": "needs about 9 GB, 1 GB are free"},
]


def test_table_of_attention():
    assert attention_table(FIGURES).splitlines() == [
        "| mechanism | n = 100 | n = 200 | time ~ n^ | theory ~ n^ | memory ~ n^ |",
        "|---|---|---|---|---|---|",
        "| dense | 0.5 s, 10 MB | 1.9 s, 40 MB | 1.96 | 1.50 | 2.02 |",
        "| local | 0.25 s, 10 MB | needs about 9 GB |  |  |  |",
    ]


def test_picture(tmp_path):
    draw_attention(FIGURES, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_picture_shows_how_seconds_would_grow_by_theory(tmp_path, monkeypatch):
    drawn = []
    axes = pytest.importorskip("matplotlib.axes").Axes
    plot = axes.plot
    monkeypatch.setattr(
        axes, "plot", lambda self, *given, **look: drawn.append(given) or plot(self, *given, **look)
    )
    draw_attention(FIGURES[:2], tmp_path / "growth.png")
    lengths, seconds = next(given[:2] for given in drawn if given[-1] == "--" and given[0])
    assert lengths == (100, 200)
    assert seconds == pytest.approx((0.5, 2**0.5))  # operations grow by twice the root of two


def test_table_of_complexity():
    sizes = ((10, 4), (20, 4), (10, 8))
    figures = [
        {
            "layer": name,
            "length": n,
            "width": d,
            "seconds": n**layer.in_length * d**layer.in_width,
            "peak_bytes": 1,
        }
        for n, d in sizes
        for name, layer in LAYER_TYPES.items()
    ]
    rows = complexity_table(figures).splitlines()
    assert rows[2] == "| self-attention | n² d | 2.00 | 2 | 1.00 | 1 |"
    assert rows[4] == "| recurrent (LSTM) | n d² | 1.00 | 1 | 2.00 | 2 |"


def test_sizes_of_the_complexity_table(monkeypatch):
    monkeypatch.setattr(complexity, "measure_in_a_process", lambda settings: {"seconds": 1})
    figures = list(measure_complexity([16, 32], [8, 12, 16], repeats=1))
    sizes = [(16, 8), (32, 8), (16, 12), (16, 16)]
    assert [(f["length"], f["width"], f["layer"]) for f in figures] == [
        (*size, name) for size in sizes for name in LAYER_TYPES
    ]


@pytest.mark.parametrize(("sizes", "name"), [(([8], [0]), "widths"), (([8, -1], [4]), "lengths")])
def test_a_wrong_size_is_named(sizes, name):
    refused(rf"`{name}` must be .* Received: {name}=", list, measure_complexity(*sizes))


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", LAYER_TYPES)
@pytest.mark.parametrize("backward", [False, True])
def test_every_layer_is_measured(name, backward):
    sizes = {"length": 16, "width": 8, "repeats": 1}
    how = {"backward": backward, "jit": False, "precision": "float32"}
    found = measure({"workload": "complexity", "layer": name, **sizes, **how})
    assert found["backend"] == "tensorflow"
    assert 0 < found["seconds"] < 60

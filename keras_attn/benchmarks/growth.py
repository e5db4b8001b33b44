"""Growth of measurements: fitted exponents, tables and a picture."""

import importlib.util
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_attn.benchmarks.complexity import LAYER_TYPES
from keras_attn.files import replaced_file
from keras_attn.validation import UserError


def fitted_exponent(points: Iterable[tuple[float, float]]) -> float | None:
    """Fits an exponent: the slope of a line through the points' logarithms, by least squares.

    Args:
        points: Pairs of a size and a measurement, both above 0; others are ignored.

    Returns:
        The exponent, or `None` for fewer than two different sizes.
    """
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def attention_table(figures: Sequence[dict[str, Any]]) -> str:
    """Makes a Markdown table of time and peak memory by mechanism and length, with exponents.

    The exponent of the theoretical operations is shown beside that of the time.

    Args:
        figures: The results of `measure_attention`.
    """
    lengths = sorted({figure["length"] for figure in figures})
    exponents = {"time": "seconds", "theory": "operations", "memory": "peak_bytes"}
    columns = [f"{what} ~ n^" for what in exponents]
    rows = [["mechanism", *(f"n = {n:,}" for n in lengths), *columns]]
    for name in dict.fromkeys(figure["mechanism"] for figure in figures):
        own = [figure for figure in figures if figure["mechanism"] == name]
        cells = [_cell([figure for figure in own if figure["length"] == n]) for n in lengths]
        rows.append([name, *cells, *(_exponent(own, of) for of in exponents.values())])
    return markdown(rows)


def complexity_table(figures: Sequence[dict[str, Any]]) -> str:
    """Makes a Markdown table of measured and theoretical exponents by layer.

    Args:
        figures: The results of `measure_complexity`.
    """
    rows = [["layer", "complexity", "time ~ n^", "theory", "time ~ d^", "theory"]]
    length, width = figures[0]["length"], figures[0]["width"]
    for name, layer in LAYER_TYPES.items():
        own = [figure for figure in figures if figure["layer"] == name]
        by_length = [figure for figure in own if figure["width"] == width]
        by_width = [figure for figure in own if figure["length"] == length]
        rows.append(
            [
                name,
                layer.complexity,
                _exponent(by_length, "seconds"),
                str(layer.in_length),
                _exponent(by_width, "seconds", "width"),
                str(layer.in_width),
            ]
        )
    return markdown(rows)


def draw_attention(figures: Sequence[dict[str, Any]], path: Path) -> None:
    """Draws seconds and peak memory over the length, both axes logarithmic.

    A thin dashed line from the first point of a mechanism shows the growth of its theoretical
    operations.

    Args:
        figures: The results of `measure_attention`.
        path: PNG file to write.

    Raises:
        UserError: matplotlib is missing.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    measured = [f for f in figures if "error" not in f]
    for axis, of, label, unit in zip(
        figure.subplots(1, 2),
        ("seconds", "peak_bytes"),
        ("seconds", "peak memory, MB"),
        (1, 1e6),
        strict=True,
    ):
        for number, name in enumerate(dict.fromkeys(f["mechanism"] for f in measured)):
            own = sorted((f for f in measured if f["mechanism"] == name), key=lambda f: f["length"])
            # Measurements of 0 cannot be shown on a logarithmic axis.
            points = [(f["length"], f[of] / unit) for f in own if f[of] > 0]
            if not points:
                continue
            look = {"color": f"C{number % 10}", "marker": "os^"[number // 10 % 3], "markersize": 4}
            axis.plot(*zip(*points, strict=True), label=name, **look)
            if of == "seconds":
                scale = own[0]["seconds"] / own[0]["operations"]
                theory = [(f["length"], scale * f["operations"]) for f in own]
                axis.plot(
                    *zip(*theory, strict=True), "--", color=look["color"], linewidth=0.7, alpha=0.8
                )
        axis.set(xlabel="length", ylabel=label)
        if axis.lines:
            axis.set(xscale="log", yscale="log")
            lengths = sorted({f["length"] for f in measured})
            axis.set_xticks(lengths, [f"{length:,}" for length in lengths])
            axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
    figure.axes[0].plot([], [], "--", color="gray", linewidth=0.7, label="by theory")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center")
    with replaced_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


def require_matplotlib() -> None:
    """Raises a UserError if pictures cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("Pictures need matplotlib: pip install 'keras_attn[viz]'.")


def _exponent(figures, of, by="length") -> str:
    fitted = fitted_exponent((f[by], f[of]) for f in figures if "error" not in f)
    return "" if fitted is None else f"{fitted:.2f}"


def _cell(figures) -> str:
    """The shortest time and the smallest memory of several processes."""
    measured = [figure for figure in figures if "error" not in figure]
    if not measured:
        return figures[0]["error"].split(",")[0] if figures else ""
    seconds = min(figure["seconds"] for figure in measured)
    megabytes = min(figure["peak_bytes"] for figure in measured) / 1e6
    return f"{seconds:.3g} s, {megabytes:,.0f} MB"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown with its first row as the header."""
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])

"""How measured figures grow: fitted exponents, as a table and as a picture."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_attn.benchmarks.complexity import LAYER_TYPES
from keras_attn.files import replaced_file
from keras_attn.validation import UserError


def fitted_exponent(points: Iterable[tuple[float, float]]) -> float | None:
    """The slope of a straight line through the points' logarithms, by least squares.

    Args:
        points: Pairs of a size and a figure, both above 0; others are left out.

    Returns:
        The exponent, or `None` where there are not two different sizes.
    """
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    middle_x, middle_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    across = sum((x - middle_x) * (y - middle_y) for x, y in logs)
    return across / sum((x - middle_x) ** 2 for x, _ in logs)


def attention_table(figures: Sequence[dict[str, Any]]) -> str:
    """Seconds and peak memory by mechanism and length, and how they grow, in Markdown.

    Args:
        figures: What `measure_attention` gave.
    """
    lengths = sorted({figure["length"] for figure in figures})
    rows = [["mechanism", *(f"n = {n:,}" for n in lengths), "time ~ n^", "memory ~ n^"]]
    for name in dict.fromkeys(figure["mechanism"] for figure in figures):
        own = [figure for figure in figures if figure["mechanism"] == name]
        cells = [_cell([figure for figure in own if figure["length"] == n]) for n in lengths]
        rows.append([name, *cells, _exponent(own, "seconds"), _exponent(own, "peak_bytes")])
    return markdown(rows)


def complexity_table(figures: Sequence[dict[str, Any]]) -> str:
    """Exponents of length and width by layer, beside the theory's, in Markdown.

    Args:
        figures: What `measure_complexity` gave.
    """
    rows = [["layer", "complexity", "time ~ n^", "theory", "time ~ d^", "theory"]]
    width = min(figure["width"] for figure in figures)
    longest = max(figure["length"] for figure in figures)
    for name, layer in LAYER_TYPES.items():
        own = [figure for figure in figures if figure["layer"] == name]
        by_length = [figure for figure in own if figure["width"] == width]
        by_width = [figure for figure in own if figure["length"] == longest]
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

    Args:
        figures: What `measure_attention` gave.
        path: PNG file to write.

    Raises:
        UserError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("Pictures need matplotlib: pip install 'keras_attn[viz]'.") from error
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
            own = [f for f in measured if f["mechanism"] == name]
            # What did not grow the process has no place on a logarithmic axis.
            points = sorted((f["length"], f[of] / unit) for f in own if f[of] > 0)
            if not points:
                continue
            style = ("-", "--", ":")[number // 10 % 3]
            axis.plot(*zip(*points, strict=True), style, marker="o", markersize=3, label=name)
        axis.set(xlabel="length", ylabel=label)
        if axis.lines:
            axis.set(xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center")
    with replaced_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


def _exponent(figures, of, by="length") -> str:
    fitted = fitted_exponent((f[by], f[of]) for f in figures if "error" not in f)
    return "" if fitted is None else f"{fitted:.2f}"


def _cell(figures) -> str:
    """The fastest of several processes, and the least memory."""
    measured = [figure for figure in figures if "error" not in figure]
    if not measured:
        return figures[0]["error"].split(",")[0] if figures else ""
    seconds = min(figure["seconds"] for figure in measured)
    megabytes = min(figure["peak_bytes"] for figure in measured) / 1e6
    return f"{seconds:.3g} s, {megabytes:,.0f} MB"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its first row the head."""
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])

"""Heat maps of attention as a picture. Needs the extra `viz`."""

import dataclasses
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attn.validation import UserError, require
from keras_attn.visualization.attention_map import describe_pattern
from keras_attn.visualization.readings import readable
from keras_attn.visualization.text_attention import LayerAttention, TextAttention

_DPI = 100
_CELL = 0.17  # inches, room for a line of text
_LETTER = 0.085
_SPACE = 0.3
_MOST_PIXELS = 1e8
_LONGEST_LABEL = 16
_NOT_SEEN = "#dddddd"
_FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
)


@dataclasses.dataclass(frozen=True)
class _Panel:
    """A matrix with its title, its labels and the allowed pairs."""

    title: str
    weights: np.ndarray
    reach: np.ndarray
    rows: list[str]
    columns: list[str]
    before: tuple[int, int] = (0, 0)

    @property
    def margins(self) -> tuple[float, float]:
        """Inches for the words on the left and above."""
        return tuple(
            _LETTER * max(map(len, words), default=0) + 0.1 for words in (self.rows, self.columns)
        )

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        left, above = self.margins
        return (
            max(left + _CELL * len(self.columns), _LETTER * len(self.title)) + _SPACE,
            above + _CELL * len(self.rows) + _CELL + _SPACE,
        )


def draw_attention(
    attention: TextAttention,
    file: Any,
    group: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> None:
    """Draws a heat map for each head of each layer, and the alignment of a pair of texts.

    Each row of the picture is a layer, each column a head, the last column their mean. Positions
    that are not visible for a mechanism are gray.

    Args:
        attention: The attention to show.
        file: A path or a file open for writing, for a PNG picture.
        group: `"encoder"`, `"decoder"` or `"cross"`; all by default.
        layer: Number of the only layer to draw, from 1.
        head: Number of the only head to draw, from 1.

    Raises:
        UserError: matplotlib is missing, there is no such group, layer or head, or the picture
            would have more than 100 million pixels.

    Examples:
        >>> task = keras_attn.tasks.Task.load("saved_models/g2p_en")
        >>> attention = text_attention(task, "cat", "K AE T")
        >>> draw_attention(attention, "cat.png", group="cross", layer=3)
    """
    lines = _lines(attention, group, layer, head)
    width = max(sum(panel.size[0] for panel in line) for line in lines) + _SPACE
    heights = [max(panel.size[1] for panel in line) for line in lines]
    height = sum(heights) + 3 * _SPACE
    require(
        width * height * _DPI**2 <= _MOST_PIXELS and max(width, height) * _DPI < 2**16,
        "The picture would be too large: choose a group, a layer or a head.",
        pixels=(int(width * _DPI), int(height * _DPI)),
    )
    figure = _figure(width, height)
    titled = _title(attention.text)
    if attention.target is not None:
        titled += f"  →  {_title(attention.target)}"
    _write(figure, _SPACE / 2, height - _SPACE, _shortened(titled, int(width / _LETTER)), size=11)
    top = height - 2 * _SPACE
    for line, line_height in zip(lines, heights, strict=True):
        left = _SPACE / 2
        for panel in line:
            _draw(figure, panel, left, top)
            left += panel.size[0]
        top -= line_height
    with warnings.catch_warnings():
        # Characters that no font contains are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(file, format="png", dpi=_DPI)


def _lines(attention, group, layer, head) -> list[list[_Panel]]:
    groups = attention.groups
    require(
        group is None or group in groups,
        f"This kind of attention is not available. Available: {', '.join(groups)}.",
        group=group,
    )
    lines = []
    for name, layers in groups.items():
        if group not in (None, name):
            continue
        for number, found in enumerate(layers, 1):
            if layer in (None, number):
                lines.append(_layer_panels(name, number, found, head))
    require(bool(lines), "This layer does not exist.", layer=layer)
    if group in (None, "cross") and layer is None and head is None and "cross" in groups:
        first = groups["cross"][0]
        matrix = attention.alignment()
        title = "alignment: mean of all layers and heads"
        lines.append([_panel(title, matrix, np.ones_like(matrix, bool), first)])
    return lines


def _layer_panels(group: str, number: int, found: LayerAttention, head: int | None) -> list[_Panel]:
    heads = len(found.weights)
    require(head is None or 1 <= head <= heads, "This head does not exist.", head=head, heads=heads)
    reach = np.broadcast_to(found.map.reach(), found.weights.shape)
    chosen = range(heads) if head is None else [head - 1]
    panels = []
    for index in chosen:
        title = f"{group} {number}, head {index + 1}" if heads > 1 else f"{group} {number}"
        panels.append(_panel(title, found.weights[index], reach[index], found))
    if head is None and heads > 1:
        mean, seen = found.weights.mean(axis=0), reach.any(axis=0)
        panels.append(_panel(f"{group} {number}, mean", mean, seen, found))
    words = describe_pattern(found.map)
    title = f"{panels[0].title}: {words}" if words else panels[0].title
    return [dataclasses.replace(panels[0], title=title), *panels[1:]]


def _panel(title: str, weights: np.ndarray, reach: np.ndarray, found: LayerAttention) -> _Panel:
    rows, columns = ([_shortened(word) for word in words] for words in (found.rows, found.columns))
    globals_ = found.map.pattern.get("globals", 0)
    before = (max(found.map.rows_before, globals_), max(found.map.columns_before, globals_))
    return _Panel(title, weights, reach, rows, columns, before)


def _draw(figure: Any, panel: _Panel, left: float, top: float) -> None:
    """Draws a panel with its corner at a position, in inches from the left and the bottom."""
    width, height = figure.get_size_inches()
    margin_left, margin_above = panel.margins
    _write(figure, left, top - _CELL, panel.title, size=8)
    columns, rows = len(panel.columns), len(panel.rows)
    bottom = top - _CELL - 0.1 - margin_above - _CELL * rows
    axes = figure.add_axes(
        (
            (left + margin_left) / width,
            bottom / height,
            _CELL * columns / width,
            _CELL * rows / height,
        )
    )
    shown = np.ma.masked_array(panel.weights, ~panel.reach & (panel.weights == 0))
    axes.set_facecolor(_NOT_SEEN)
    axes.imshow(shown, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    options = {"fontsize": 8, "parse_math": False}
    for place, word in enumerate(panel.columns):
        turned = 90 if len(word) > 2 else 0
        axes.text(place, -0.7, word, rotation=turned, ha="center", va="bottom", **options)
    for place, word in enumerate(panel.rows):
        axes.text(-0.7, place, word, ha="right", va="center", **options)
    for edge in axes.spines.values():
        edge.set_color("#999999")
    for count, line in zip(panel.before, (axes.axhline, axes.axvline), strict=True):
        if count:
            line(count - 0.5, color="#b03a2e", linewidth=1)


def _figure(width: float, height: float) -> Any:
    try:
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("Pictures need matplotlib: pip install 'keras_attn[viz]'.") from error
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    known = set(font_manager.get_font_names())
    with matplotlib.rc_context({"font.family": [name for name in _FONTS if name in known]}):
        return Figure(figsize=(width, height))


def _write(figure: Any, x: float, y: float, text: str, size: int) -> None:
    width, height = figure.get_size_inches()
    figure.text(x / width, y / height, text, fontsize=size, parse_math=False, va="bottom")


def _title(text: str) -> str:
    return " ".join(readable(word) for word in text.split())


def _shortened(text: str, longest: int = _LONGEST_LABEL) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def png_images(attention: TextAttention) -> Sequence[tuple[str, bytes]]:
    """Draws the groups of an attention as PNG pictures, by their names."""
    import io

    images = []
    for group in attention.groups:
        file = io.BytesIO()
        draw_attention(attention, file, group)
        images.append((group, file.getvalue()))
    return images

"""Attention as an interactive, self-contained HTML page."""

import base64
import html
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.files import write_text
from keras_attn.pages import common_style, json_inside_html
from keras_attn.reading import read_resource
from keras_attn.visualization.attention_map import describe_pattern
from keras_attn.visualization.text_attention import LayerAttention, TextAttention

_TITLES = {"encoder": ("from", "to"), "decoder": ("from", "to"), "cross": ("written", "source")}


def write_page(attention: TextAttention, file: str | Path) -> None:
    """Writes a page with the attention of layers and heads, rollout and alignment.

    Args:
        attention: The attention to show.
        file: The output file; written under a temporary name and then renamed.

    Examples:
        >>> task = keras_attn.tasks.Task.load("saved_models/g2p_en")
        >>> attention = text_attention(task, "cat", "K AE T")
        >>> write_page(attention, "cat.html")  # open it in a browser
    """
    write_text(Path(file), page(attention))


def page(attention: TextAttention) -> str:
    """Returns the page as HTML, with all texts escaped."""
    content = {
        "text": attention.text,
        "target": attention.target,
        "groups": [_group(attention, name) for name in attention.groups],
    }
    parts = {
        "title": html.escape(f"Attention: {attention.text}"[:80]),
        "style": common_style() + _part("page.css"),
        "script": _part("page.js"),
        "data": json_inside_html(content),
    }
    # Inserted text is not searched again.
    pieces = _part("page.html").replace("}}", "{{").split("{{")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _group(attention: TextAttention, name: str) -> dict[str, Any]:
    rollout = attention.rollout(name)
    return {
        "name": name,
        "layers": [_layer(layer, _TITLES[name]) for layer in attention.groups[name]],
        "rollout": None if rollout is None else _packed(rollout),
    }


def _layer(layer: LayerAttention, titles: tuple[str, str]) -> dict[str, Any]:
    found, reach = layer.map, layer.map.reach()
    buckets = found.pattern.get("buckets")
    return {
        "name": found.name,
        "mechanism": found.mechanism,
        "note": describe_pattern(found),
        "titles": titles,
        "rows": layer.rows,
        "columns": layer.columns,
        "weights": _packed(layer.weights),
        "reach": None if reach.all() else _packed(reach),
        "buckets": None if buckets is None else buckets[0].tolist(),
        "globals": found.pattern.get("globals", 0),
        "before": {"rows": found.rows_before, "columns": found.columns_before},
    }


def _packed(matrices: np.ndarray) -> dict[str, Any]:
    """Numbers from 0 to 1 in 16 bits each."""
    numbers = np.round(np.clip(matrices, 0, 1) * 65535).astype("<u2")
    return {"shape": matrices.shape, "numbers": base64.b64encode(numbers.tobytes()).decode()}


def _part(name: str) -> str:
    return read_resource("visualization", "page", name)

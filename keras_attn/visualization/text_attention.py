"""What a task attends to in a text: its maps, with tokens at their rows and columns."""

import dataclasses
from typing import Any

import keras
import numpy as np

from keras_attn.tasks import Task
from keras_attn.tasks.attention import GROUPS, attention_group, unit_names
from keras_attn.validation import require
from keras_attn.visualization.attention_map import AttentionMap
from keras_attn.visualization.attention_maps import attention_maps
from keras_attn.visualization.readings import Reading, read_text
from keras_attn.visualization.rollout import attention_rollout


@dataclasses.dataclass(frozen=True)
class LayerAttention:
    """One layer's attention in a text.

    Attributes:
        rows: What stands at each row, the token that looks.
        columns: What stands at each column, the token that is looked at.
        map: The weights, a batch of 1.
    """

    rows: list[str]
    columns: list[str]
    map: AttentionMap

    @property
    def weights(self) -> np.ndarray:
        """The weights, float32 (heads, rows, columns)."""
        return self.map.weights[0]


@dataclasses.dataclass(frozen=True)
class TextAttention:
    """What a model attends to in a text.

    Attributes:
        text: The text that goes in.
        target: The text that goes out, or `None`.
        groups: The layers from the first one on, by what attends: `"encoder"`, `"decoder"` (a
            sequence to itself), `"cross"` (the target to the source).
    """

    text: str
    target: str | None
    groups: dict[str, list[LayerAttention]]

    def rollout(self, group: str) -> np.ndarray | None:
        """Follows the attention of a group down to its inputs.

        Args:
            group: Name of the group.

        Returns:
            float64 (layers, length, length), see `attention_rollout`; `None` where a layer
            attends to something else than its own positions.
        """
        layers = self.groups[group]
        shapes = {layer.weights.shape[1:] for layer in layers}
        if len(shapes) > 1 or not all(layer.map.is_self for layer in layers):
            return None
        return attention_rollout([layer.weights for layer in layers])

    def alignment(self) -> np.ndarray | None:
        """How much each token of the target looks at each of the source, over layers and heads.

        Returns:
            float32 (target, source), the mean of the cross-attention, or `None` without one.
        """
        layers = self.groups.get("cross")
        if not layers:
            return None
        return np.mean([layer.weights.mean(axis=0) for layer in layers], axis=0)


def text_attention(task: Task, text: str, target: str | None = None) -> TextAttention:
    """Shows what a task's model attends to in a text.

    A decoder reads the target, whichever the model itself would write. At each row of its
    cross-attention stands the token that is written there, at each row of its self-attention the
    token that is read.

    Args:
        task: The task.
        text: What the task reads: a text, or the name of a PNG file.
        target: The text that goes out; what the task predicts by default. For a language model
            the continuation, by default none.

    Returns:
        The attention of all layers that have any.

    Raises:
        UserError: A text is too long, there is no such image, the task has no target, or its model
            has no attention.
    """
    return _attention(task.backbone, read_text(task, text, target))


def model_attention(model: keras.Model, inputs: Any, example: int = 0) -> TextAttention:
    """Shows what any model attends to, with numbers of positions for tokens.

    Args:
        model: A model built with layers of this package.
        inputs: What it is called with, a batch.
        example: Which example of the batch is shown.

    Returns:
        The attention of all layers that have any.

    Raises:
        UserError: The model has no attention.
    """
    return _attention(model, Reading("", inputs), example)


def _attention(model: keras.Model, reading: Reading, example: int = 0) -> TextAttention:
    maps = [found.example(example) for found in attention_maps(model, reading.inputs)]
    require(bool(maps), "The model has no attention to be seen.", model=type(model).__name__)
    groups: dict[str, list[LayerAttention]] = {}
    for found in maps:
        group = attention_group(found.name, found.crosses, found.is_causal)
        groups.setdefault(group, []).append(_with_tokens(found, group, reading))
    ordered = {name: groups[name] for name in GROUPS if name in groups}
    return TextAttention(reading.text, reading.target_text, ordered)


def _with_tokens(found: AttentionMap, group: str, reading: Reading) -> LayerAttention:
    rows = {"encoder": reading.source, "decoder": reading.target, "cross": reading.written}[group]
    columns = reading.target if group == "decoder" else reading.source
    targets, sources = found.weights.shape[2:]
    rows = _fitting(rows, targets - found.rows_before)
    columns = _fitting(columns, sources - found.columns_before)
    return LayerAttention(
        _before(found, found.rows_before, columns) + rows,
        _before(found, found.columns_before, columns) + columns,
        found,
    )


def _before(found: AttentionMap, count: int, tokens: list[str]) -> list[str]:
    """Names of what stands before a sequence."""
    if "slots" in found.pattern:
        spans = [(max(start, 0), end) for start, end in found.pattern["slots"]]
        return [f"⟨{'⋯'.join(_ends(tokens, *span))}⟩" for span in spans[:count]]
    if "globals" in found.pattern:
        return unit_names(count)
    if "reads" in found.pattern:
        return ["⟨start⟩"] * count
    return [f"⟨memory {number - count}⟩" for number in range(count)]


def _ends(tokens: list[str], start: int, end: int) -> list[str]:
    """The first and the last token of a part."""
    part = tokens[start:end]
    return ["empty"] if not part else [part[0], part[-1]] if len(part) > 1 else part


def _fitting(tokens: list[str], count: int) -> list[str]:
    """The tokens, or the numbers of positions that are not tokens."""
    return list(tokens) if len(tokens) == count else [str(number) for number in range(count)]

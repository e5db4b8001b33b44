"""Attention maps of a task for a text, with tokens at rows and columns."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.tasks import Task
from keras_attn.tasks.attention import GROUPS, attention_group, unit_names
from keras_attn.validation import require
from keras_attn.visualization.attention_map import AttentionMap
from keras_attn.visualization.attention_maps import attention_maps
from keras_attn.visualization.readings import Reading, read_text


@dataclasses.dataclass(frozen=True)
class LayerAttention:
    """One layer's attention in a text.

    Attributes:
        rows: The attending token of each row.
        columns: The attended token of each column.
        map: The weights, a batch of 1.

    Examples:
        >>> task = keras_attn.tasks.Task.load("saved_models/g2p_en")
        >>> layer = text_attention(task, "cat", "K AE T").groups["cross"][2]
        >>> layer.rows, layer.columns
        (['K', 'AE', 'T', '</s>'], ['c', 'a', 't', '</s>'])
        >>> layer.weights.shape  # (heads, rows, columns)
        (4, 4, 4)
        >>> layer.weights.mean(axis=0).argmax(axis=1).tolist()  # the letter of each phoneme
        [0, 1, 2, 3]
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
    """The attention of a model for a text.

    Attributes:
        text: The input text.
        target: The output text, or `None`.
        groups: The layers in order, by kind of attention: `"encoder"`, `"decoder"` (a
            sequence to itself), `"cross"` (the target to the source).

    Examples:
        >>> task = keras_attn.tasks.Task.load("saved_models/g2p_en")
        >>> attention = text_attention(task, "cat", "K AE T")
        >>> {group: len(layers) for group, layers in attention.groups.items()}
        {'encoder': 3, 'decoder': 3, 'cross': 3}
        >>> attention.alignment().round(1)  # rows K AE T </s>, columns c a t </s>
        array([[0.8, 0.2, 0. , 0.1],
               [0. , 0.7, 0.3, 0. ],
               [0. , 0. , 0.8, 0.2],
               [0.1, 0. , 0. , 0.9]], dtype=float32)
    """

    text: str
    target: str | None
    groups: dict[str, list[LayerAttention]]

    def rollout(self, group: str) -> np.ndarray | None:
        """Computes the attention rollout of a group.

        Args:
            group: Name of the group.

        Returns:
            float64 (layers, length, length), see `attention_rollout`; `None` if a layer
            does not only attend to its own positions.
        """
        layers = self.groups[group]
        shapes = {layer.weights.shape[1:] for layer in layers}
        if len(shapes) > 1 or not all(layer.map.is_self for layer in layers):
            return None
        return attention_rollout([layer.weights for layer in layers])

    def alignment(self) -> np.ndarray | None:
        """Computes an alignment of target and source.

        Returns:
            float32 (target, source), the mean of the cross-attention, or `None` without one.
        """
        layers = self.groups.get("cross")
        if not layers:
            return None
        return np.mean([layer.weights.mean(axis=0) for layer in layers], axis=0)


def attention_rollout(weights: Sequence[np.ndarray]) -> np.ndarray:
    """Computes the attention of each layer to the inputs.

    Each layer is assumed to consist of equal parts of its residual connection and its attention,
    averaged over the heads: Â = (A + I) / 2, rows scaled to a sum of 1. The rollout of a layer is
    its Â times the rollout of the layer below.

    Args:
        weights: For each layer, from the first one, (heads, length, length).

    Returns:
        float64 (layers, length, length): row i contains the contribution of each input to position
        i.

    Examples:
        >>> weights = np.array([[[1.0, 0.0], [1.0, 0.0]]])  # one head, which attends to the first
        >>> attention_rollout([weights, weights])[-1]
        array([[1.  , 0.  ],
               [0.75, 0.25]])

    Reference:
        Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928, section 3.
    """
    rolled, below = [], None
    for layer in weights:
        mixed = np.mean(np.asarray(layer, np.float64), axis=0) + np.eye(layer.shape[-1])
        mixed /= mixed.sum(axis=-1, keepdims=True)
        below = mixed if below is None else mixed @ below
        rolled.append(below)
    return np.stack(rolled)


def text_attention(task: Task, text: str, target: str | None = None) -> TextAttention:
    """Computes the attention of a task's model for a text.

    The decoder reads the given target. Rows of its cross-attention are labeled with the token that
    is generated there, rows of its self-attention with the token that is read.

    Args:
        task: The task.
        text: A text, or the name of a PNG file.
        target: The output text; the task's prediction by default. For a language model the
            continuation, empty by default.

    Returns:
        The attention of all attention layers.

    Raises:
        UserError: A text is too long, the image does not exist, the task has no target, or its
            model has no attention.

    Examples:
        >>> task = keras_attn.tasks.Task.load("saved_models/g2p_en")
        >>> attention = text_attention(task, "cat")
        >>> attention.target
        'K AE T'
        >>> list(attention.groups)
        ['encoder', 'decoder', 'cross']
    """
    return _attention(task.backbone, read_text(task, text, target))


def model_attention(model: keras.Model, inputs: Any, example: int = 0) -> TextAttention:
    """Computes the attention of any model, with position numbers instead of tokens.

    Args:
        model: A model built with layers of this package.
        inputs: Its inputs, a batch.
        example: Index of the example in the batch.

    Returns:
        The attention of all attention layers.

    Raises:
        UserError: The model has no attention.

    Examples:
        >>> model = TransformerEncoder(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> attention = model_attention(model, {"token_ids": np.array([[5, 7, 3]])})
        >>> (layer,) = attention.groups["encoder"]
        >>> layer.columns, layer.weights.shape
        (['0', '1', '2'], (2, 3, 3))
    """
    return _attention(model, Reading("", inputs), example)


def _attention(model: keras.Model, reading: Reading, example: int = 0) -> TextAttention:
    maps = [found.example(example) for found in attention_maps(model, reading.inputs)]
    require(bool(maps), "The model has no attention layers.", model=type(model).__name__)
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
    """Labels of the columns or rows before a sequence."""
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
    """The tokens, or position numbers without tokens."""
    return list(tokens) if len(tokens) == count else [str(number) for number in range(count)]

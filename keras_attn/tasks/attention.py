"""What a task's model attends to in texts, as a function to be served."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_attn.layers.attention.capture import CapturedAttention, capture_attention
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.token_view import TokenView
from keras_attn.validation import require

GROUPS = ("encoder", "decoder", "cross")
"""Whose attention it is: of a source or of a target to itself, or of a target to a source."""

_EXAMPLES = 2
"""Of so many texts the weights are kept in an export, for they are many numbers."""


def attention_group(name: str, crosses: bool, is_causal: bool) -> str:
    """Whose attention a layer's is: as its parts are called, or by whether it sees what follows.

    Args:
        name: The layer's path in its model.
        crosses: Whether queries and values are different sequences.
        is_causal: Whether a query sees none that follow it.

    Returns:
        One of `GROUPS`.
    """
    if crosses:
        return "cross"
    for part in name.split("/"):
        for group in ("encoder", "decoder"):
            if part.startswith(group):
                return group
    return "decoder" if is_causal else "encoder"


def unit_names(count: int) -> list[str]:
    """What stands at global positions that are no tokens."""
    return [f"⟨unit {number}⟩" for number in range(count)]


def attention_function(
    model: keras.Model,
    read: Callable[..., TokenView],
    inputs: Mapping[str, tf.TensorSpec],
    example_inputs: Callable[[Sequence[Any]], Mapping[str, Any]],
) -> ServingFunction:
    """Makes the signature that shows what a model attends to.

    For each group of layers there are their weights, `encoder`, `decoder` or `cross`, float32
    (batch, layers, heads, target, source), and strings for what looks and what is looked at,
    `cross_rows` (batch, target) and `cross_columns` (batch, source). "" is padding, or a global
    position that a text does not need; weights are 0 there. It raises a `UserError` while it is
    traced where the model has no such weights.

    Args:
        model: The model.
        read: From the inputs to what the model reads.
        inputs: The inputs' specifications by name.
        example_inputs: From example texts to the function's inputs.
    """

    def attention(**strings: tf.Tensor) -> dict[str, tf.Tensor]:
        reading = read(**strings)
        with capture_attention() as found:
            model(reading.inputs, training=False)
        return _outputs(_grouped(model, found), reading)

    return ServingFunction(
        attention, inputs, lambda texts: example_inputs(texts[:_EXAMPLES]), optional=True
    )


def _grouped(
    model: keras.Model, found: list[CapturedAttention]
) -> dict[str, list[CapturedAttention]]:
    require(bool(found), "The model has no attention to be seen.", model=type(model).__name__)
    groups: dict[str, list[CapturedAttention]] = {}
    for shown in found:
        require(
            not shown.is_step and "states" not in shown.pattern,
            "What is attended to inside a loop cannot be seen from a graph.",
            layer=type(shown.layer).__name__,
        )
        name = getattr(shown.layer, "path", None) or shown.layer.name
        groups.setdefault(attention_group(name, shown.crosses, shown.is_causal), []).append(shown)
    for name, layers in groups.items():
        sizes = {(each.weights.shape[1], each.rows_before, each.columns_before) for each in layers}
        require(len(sizes) == 1, "The layers of a group must be alike.", group=name, sizes=sizes)
    return groups


def _outputs(
    groups: dict[str, list[CapturedAttention]], reading: TokenView
) -> dict[str, tf.Tensor]:
    outputs = {}
    for name in filter(groups.__contains__, GROUPS):
        layers = groups[name]
        first, weights = layers[0], tf.stack([tf.cast(x.weights, tf.float32) for x in layers], 1)
        queries = {"encoder": reading.source, "decoder": reading.target, "cross": reading.written}
        keys = reading.target if name == "decoder" else reading.source
        rows = _labels(queries[name], first.query_real, first.rows_before)
        columns = _labels(keys, first.source_real, first.columns_before)
        real = (rows != "")[:, :, None] & (columns != "")[:, None, :]
        outputs[name] = tf.where(real[:, None, None], weights, 0.0)
        outputs |= {f"{name}_rows": rows, f"{name}_columns": columns}
    return outputs


def _labels(tokens: tf.Tensor | None, real: tf.Tensor, before: int) -> tf.Tensor:
    """What stands along an axis, strings (batch, positions): units, and tokens or numbers."""
    if tokens is None:
        batch, count = tf.shape(real)[0], tf.shape(real)[1] - before
        tokens = tf.repeat(tf.strings.as_string(tf.range(count))[None], batch, axis=0)
    if not before:
        return tokens
    units = tf.where(real[:, :before], tf.constant(unit_names(before)), "")
    return tf.concat([units, tokens], axis=1)

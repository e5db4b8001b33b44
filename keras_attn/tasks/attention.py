"""Serving signature that returns the attention weights of a task's model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_attn.layers.attention.capture import CapturedAttention, capture_attention
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.token_view import TokenView
from keras_attn.validation import require

GROUPS = ("encoder", "decoder", "cross")
"""Groups of attention layers: source to source, target to target, and target to source."""

_EXAMPLES = 2
"""Number of example texts in an export: attention weights are large."""


def attention_group(name: str, crosses: bool, is_causal: bool) -> str:
    """Finds the group of an attention layer, by the names in its path or by its causality.

    Args:
        name: The layer's path in its model.
        crosses: Whether queries and values are different sequences.
        is_causal: Whether no query attends to later positions.

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
    """Returns names for global positions that are not tokens."""
    return [f"⟨unit {number}⟩" for number in range(count)]


def attention_function(
    model: keras.Model,
    read: Callable[..., TokenView],
    inputs: Mapping[str, tf.TensorSpec],
    example_inputs: Callable[[Sequence[Any]], Mapping[str, Any]] | None = None,
) -> ServingFunction:
    """Makes the signature that returns a model's attention weights.

    Its outputs are, for each group of layers, the weights `encoder`, `decoder` or `cross`, float32
    (batch, layers, heads, target, source), and the names of their rows and columns, for example
    `cross_rows` (batch, target) and `cross_columns` (batch, source), strings. A name of "" is
    padding, or a global position that a text does not use; weights are 0 there. Tracing raises a
    `UserError` if the model has no attention weights.

    Args:
        model: The model.
        read: Converts the inputs, in the order of `inputs`, to what the model reads.
        inputs: The inputs' specifications by name.
        example_inputs: Converts example texts to the function's inputs; by default the texts
            themselves are each of the inputs.

    Returns:
        The signature.
    """

    def attention(**strings: tf.Tensor) -> dict[str, tf.Tensor]:
        reading = read(*(strings[name] for name in inputs))
        with capture_attention() as found:
            model(reading.inputs, training=False)
        return _outputs(_grouped(model, found), reading)

    def examples(texts: Sequence[Any]) -> Mapping[str, Any]:
        texts = texts[:_EXAMPLES]
        return example_inputs(texts) if example_inputs else dict.fromkeys(inputs, texts)

    return ServingFunction(attention, inputs, examples, optional=True)


def _grouped(
    model: keras.Model, found: list[CapturedAttention]
) -> dict[str, list[CapturedAttention]]:
    require(
        bool(found),
        "The model has no attention layers whose weights can be recorded.",
        model=type(model).__name__,
    )
    groups: dict[str, list[CapturedAttention]] = {}
    for shown in found:
        require(
            not shown.is_step and "states" not in shown.pattern,
            "Attention weights computed inside a loop cannot be returned from a graph.",
            layer=type(shown.layer).__name__,
        )
        name = getattr(shown.layer, "path", None) or shown.layer.name
        groups.setdefault(attention_group(name, shown.crosses, shown.is_causal), []).append(shown)
    for name, layers in groups.items():
        sizes = {(each.weights.shape[1], each.rows_before, each.columns_before) for each in layers}
        require(
            len(sizes) == 1,
            "All layers of a group must have the same number of heads and global positions.",
            group=name,
            sizes=sizes,
        )
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
    """Names along an axis, strings (batch, positions): units, and tokens or numbers."""
    if tokens is None:
        batch, count = tf.shape(real)[0], tf.shape(real)[1] - before
        tokens = tf.repeat(tf.strings.as_string(tf.range(count))[None], batch, axis=0)
    if not before:
        return tokens
    units = tf.where(real[:, :before], tf.constant(unit_names(before)), "")
    return tf.concat([units, tokens], axis=1)

"""Arguments and weights of Keras' own attention layers."""

from typing import Any

import keras
from keras import ops

from keras_attn.validation import require

KERAS_LAYERS = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
_NAMES = {"head_dim": "key_dim", "num_query_heads": "num_heads"}


def keras_arguments(layer: keras.layers.Layer) -> dict[str, Any]:
    """The arguments with which `MultiHeadAttention` computes what a Keras layer does.

    Args:
        layer: One of `KERAS_LAYERS`.

    Returns:
        The arguments by name.

    Raises:
        UserError: It is another layer, or quantized.
    """
    require(
        isinstance(layer, KERAS_LAYERS),
        "`layer` must be a keras.layers.MultiHeadAttention or a GroupQueryAttention.",
        layer=type(layer).__name__,
    )
    modes = {part.quantization_mode for part in layer._flatten_layers()} - {None}
    require(
        not modes,
        "`layer` must not be quantized: copy it first, then quantize the copy.",
        quantization_mode=", ".join(sorted(modes)),
    )
    arguments = {_NAMES.get(name, name): value for name, value in layer.get_config().items()}
    # Keras leaves it out of the configuration.
    return arguments | {"flash_attention": True if layer._flash_attention else None}


def keras_shapes(layer: keras.layers.Layer) -> list[tuple]:
    """The shapes to build a copy of a Keras layer for: query, value and, if it differs, key.

    Args:
        layer: One of `KERAS_LAYERS`, built.
    """
    query, value, key = (_dense(layer, role) for role in ("query", "value", "key"))
    axes = (None,) * (len(query.equation.partition(",")[0]) - 1)
    sizes = [dense.kernel.shape[0] for dense in (query, value, key)]
    return [(*axes, size) for size in (sizes if sizes[1] != sizes[2] else sizes[:2])]


def copy_keras_weights(layer: keras.layers.Layer, copy: Any) -> None:
    """Copies the weights of a Keras layer.

    Args:
        layer: One of `KERAS_LAYERS`, built.
        copy: A `MultiHeadAttention` of the same arguments, built.
    """
    for projection in copy.projections:
        _assign(projection, [_dense(layer, role) for role in projection.heads])
    _assign(copy.output_projection, [_dense(layer, "output")])


def _dense(layer: keras.layers.Layer, role: str) -> keras.layers.EinsumDense:
    return getattr(layer, f"_{role}_dense")


def _assign(projection: keras.layers.Layer, parts: list) -> None:
    """Puts the kernels and the biases of several layers side by side."""
    rows = projection.kernel.shape[0]
    kernels = [ops.reshape(part.kernel, (rows, -1)) for part in parts]
    projection.kernel.assign(ops.concatenate(kernels, axis=1))
    if projection.bias is not None:
        biases = [ops.reshape(part.bias, (-1,)) for part in parts]
        projection.bias.assign(ops.concatenate(biases))

"""Checks that an attention layer can attend within a sequence, causally, or to a source."""

import inspect
from typing import Any

import keras

from keras_attn.validation import require

_CALL = ("query", "value", "attention_mask")


def require_self_attention(name: str, layer: Any, is_causal: bool = False) -> None:
    """Raises unless a layer can attend from a sequence to itself.

    Args:
        name: Name of the layer in errors.
        layer: An attention layer of this package, or another one with the same call.
        is_causal: Whether it must support causal masking.

    Raises:
        UserError: It is no attention layer, or does not support causal masking.
    """
    _require_attention(name, layer, (*_CALL, "use_causal_mask"))
    require(
        not is_causal or getattr(layer, "can_be_causal", True),
        f"`{name}` must support causal masking.",
        **{name: type(layer).__name__},
    )


def require_cross_attention(name: str, layer: Any) -> None:
    """Raises unless a layer can attend from one sequence to another.

    Args:
        name: Name of the layer in errors.
        layer: An attention layer of this package, or another one with the same call.

    Raises:
        UserError: It is no attention layer, or only attends within one sequence.
    """
    _require_attention(name, layer, _CALL)
    require(
        getattr(layer, "can_cross", True),
        f"`{name}` must be able to attend to another sequence.",
        **{name: type(layer).__name__},
    )
    window = getattr(layer, "sliding_window", None)
    require(
        window is None,
        f"`{name}` must have no sliding window: cross-attention does not support one.",
        **{name: type(layer).__name__, "sliding_window": window},
    )
    relative = getattr(layer, "relative_positions", None)
    require(
        relative is None,
        f"`{name}` must have no relative positions: cross-attention does not support them.",
        **{name: type(layer).__name__, "relative_positions": type(relative).__name__},
    )


def require_steps(name: str, layer: Any, *methods: str) -> None:
    """Raises unless a layer can decode step by step.

    Args:
        name: Name of the argument in the message.
        layer: An attention layer.
        *methods: Names of the methods that decoding calls.

    Raises:
        UserError: A method is missing.
    """
    require(
        all(hasattr(layer, method) for method in methods),
        f"Decoding step by step needs a layer as `{name}` with "
        f"{' and '.join(f'`{method}`' for method in methods)}.",
        **{name: type(layer).__name__},
    )


def _require_attention(name: str, layer: Any, arguments: tuple[str, ...]) -> None:
    is_layer = isinstance(layer, keras.layers.Layer)
    parameters = inspect.signature(layer.call).parameters if is_layer else {}
    kinds = {parameter.kind for parameter in parameters.values()}
    # A Sequential takes further names too, but no second sequence.
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds and (
        inspect.Parameter.VAR_POSITIONAL in kinds or "query" in parameters
    )
    require(
        is_layer and (takes_any or all(argument in parameters for argument in arguments)),
        f"`{name}` must be an attention layer, called with {', '.join(arguments)}.",
        **{name: type(layer).__name__ if is_layer else layer},
    )


def build_attention(
    layer: keras.layers.Layer, shape: tuple, source_shape: tuple | None = None
) -> None:
    """Builds an attention layer.

    Args:
        layer: An attention layer of this package, or another one with the same call.
        shape: Shape of the sequence that attends.
        source_shape: Shape of another sequence that it attends to; `None` for self-attention, for
            which layers of this package put their projections side by side in one kernel.
    """
    parameters = inspect.signature(layer.build).parameters
    value = parameters.get("value_shape")
    if source_shape is None and value is not None and value.default is value.empty:
        source_shape = shape
    takes_both = source_shape is not None and len(parameters) > 1
    layer.build(*((shape, source_shape) if takes_both else (shape,)))

"""Checks of model settings before a model is built."""

import inspect
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any

from keras_attn.layers.activations import get_activation
from keras_attn.models import get_preset, model_class
from keras_attn.validation import UserError, require, require_one_of, require_positive

# Arguments of a model that follow from the texts and the training.
_NOT_SET = ("vocabulary_size", "target_vocabulary_size", "dtype", "name", "trainable")
_PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def check_model_settings(
    preset: str, settings: Mapping[str, Any], further: Collection[str] = ()
) -> None:
    """Raises for settings that no model of the preset's class could have.

    Args:
        preset: Name of the preset.
        settings: Arguments of the model that differ from the preset's.
        further: Names besides those of the class's arguments.

    Raises:
        UserError: A name is unknown, a value is of the wrong type, or the heads do not divide the
            width.
    """
    family = model_class(preset)
    parameters = inspect.signature(family).parameters
    allowed = [name for name in parameters if name not in _NOT_SET]
    for name, value in settings.items():
        require_one_of("model setting", name, [*allowed, *further])
        _check_type(name, value, parameters[name].annotation if name in parameters else None)
    _check_heads({**get_preset(preset).config, **settings})


def check_activation(name: str | None) -> None:
    """Raises unless Keras or this library has an activation of the name."""
    try:
        get_activation(name)
    except ValueError as error:
        raise UserError(
            f"`model.activation` must name an activation of Keras. Received: activation={name!r}."
        ) from error


def _check_type(name: str, value: Any, annotation: Any) -> None:
    union = isinstance(annotation, types.UnionType)
    kinds = set(typing.get_args(annotation) if union else (annotation,)) - {types.NoneType}
    if value is None or not kinds <= set(_PLAIN):
        return  # The model checks these itself.
    right = type(value) in kinds or (type(value) is int and float in kinds)
    expected = " or ".join(word for kind, word in _PLAIN.items() if kind in kinds)
    require(right, f"`model.{name}` must be {expected}.", **{name: value})


def _check_heads(sizes: Mapping[str, Any]) -> None:
    if "num_heads" not in sizes or "hidden_dim" not in sizes:
        return
    heads, width = sizes["num_heads"], sizes["hidden_dim"]
    require_positive(num_heads=heads, hidden_dim=width)
    require(
        sizes.get("key_dim") is not None or width % heads == 0,
        "`num_heads` must divide `hidden_dim`.",
        num_heads=heads,
        hidden_dim=width,
    )

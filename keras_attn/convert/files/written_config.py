"""Configurations of Hugging Face from those of models: the inverse of `configuration`."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_attn.convert.files.configuration import ACTIVATIONS
from keras_attn.validation import UserError, require

# Arguments that change no outputs.
_NEUTRAL = ("name", "dtype", "trainable", "recompute")
_OF_TRAINING = ("seed", "initializer", "regularizer", "constraint")
_VOCABULARIES = ("vocabulary_size", "target_vocabulary_size")


def written_arguments(
    model: keras.Model, used: Mapping[str, tuple[str, Any]], padding: int = 1
) -> dict[str, Any]:
    """Writes a model's arguments that are numbers; see `read_arguments`.

    Args:
        model: The model.
        used: Our arguments by key.
        padding: Number of rows that the checkpoint's embeddings lack.
    """
    config = model.get_config()
    found = {key: config[name] for key, (name, _) in used.items()}
    for key, (name, _) in used.items():
        if name in _VOCABULARIES and found[key] is not None:
            found[key] -= padding
    return {key: value for key, value in found.items() if value is not None}


def written_activation(name: str) -> str:
    """The name of an activation in transformers.

    Raises:
        UserError: There is none.
    """
    return written_as("activation", name, ACTIVATIONS)


def written_as(argument: str, value: Any, ours: Mapping[str, Any]) -> str:
    """The first of the names of a value in transformers.

    Args:
        argument: Name of our argument, for error messages.
        value: Its value.
        ours: Our values by their names.

    Raises:
        UserError: It has none.
    """
    names = [name for name, one in ours.items() if one == value]
    require(bool(names), f"transformers has no such `{argument}`.", **{argument: value})
    return names[0]


def labels_of(names: Sequence[str]) -> dict[str, Any]:
    """Names of labels as in configurations."""
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def require_counterparts(
    model: keras.Model, expected: Mapping[str, Any], architecture: str
) -> None:
    """Refuses a model with arguments that its configuration does not express.

    Args:
        model: The model.
        expected: The arguments that are read from the configuration; others must have their
            defaults.
        architecture: Name of the class in transformers.

    Raises:
        UserError: An argument has another value.
    """
    signature = inspect.signature(type(model)).parameters
    given = {name: value for name, value in model.get_config().items() if name not in _NEUTRAL}
    for name, value in given.items():
        default = signature[name].default if name in signature else None
        if _computing(value) != _computing(expected.get(name, default)):
            raise without_counterpart(architecture, **{name: _shown(value)})


def without_counterpart(architecture: str, **values: Any) -> UserError:
    """The error of a model or task that a class of transformers cannot express.

    Args:
        architecture: Name of the class.
        **values: What has no counterpart.
    """
    listed = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return UserError(f"{architecture} of transformers has no counterpart of {listed}.")


def computing_config(layer: keras.layers.Layer) -> dict[str, Any]:
    """The arguments of a layer that affect its outputs."""
    return _computing(layer.get_config())


def _computing(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _computing(one)
        for name, one in value.items()
        if name not in _NEUTRAL and not name.endswith(_OF_TRAINING)
    }


def _shown(value: Any) -> Any:
    if isinstance(value, list) and value:
        return _shown(value[0])
    return value["class_name"] if isinstance(value, dict) and "class_name" in value else value

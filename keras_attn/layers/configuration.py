"""Configurations that hold every argument of a constructor."""

import dataclasses
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Callable
from typing import Any, ClassVar

import keras

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.layer_configs import serialize_layer

_OF_KERAS = ("name", "dtype", "trainable")


class Configured:
    """Keeps what the constructor of a layer or a model was given, as its configuration.

    The constructor names all of its arguments, but those of Keras' own base classes and the fields
    of the dataclass `sizes`, which it takes as `**sizes`. A subclass names this class before that
    of Keras.
    """

    sizes: ClassVar[type | None] = None
    """Dataclass whose fields the constructor takes besides its own arguments."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _keeping_arguments(cls.__init__, cls.sizes)
            cls.__doc__ = _with_fields(cls.__doc__, cls.sizes)

    def given_config(self) -> dict[str, Any]:
        """Describes what the constructor was given, but for Keras' own arguments."""
        return {name: _described(value) for name, value in vars(self._given).items()}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        own = {
            name: _made(value, custom_objects)
            for name, value in config.items()
            if name not in _OF_KERAS
        }
        return cls(**config | own)


def _keeping_arguments(init: Callable, sizes: type | None) -> Callable:
    """A constructor that keeps its arguments as `_given`, if it is that of the object's class."""
    signature = _with_sizes(inspect.signature(init), sizes)

    @functools.wraps(init)
    def keeping(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        of_keras = bound.arguments.pop("kwargs", {})
        init(**bound.arguments, **of_keras)
        if type(self).__init__ is keeping:
            bound.apply_defaults()
            # Not a dict, in which Keras would take layers for parts of the object.
            self._given = types.SimpleNamespace(
                **{name: bound.arguments[name] for name in _own_arguments(signature)}
            )

    keeping.__signature__ = signature
    return keeping


def _own_arguments(signature: inspect.Signature) -> list[str]:
    return [
        parameter.name
        for parameter in list(signature.parameters.values())[1:]
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in _OF_KERAS
    ]


def _with_sizes(signature: inspect.Signature, sizes: type | None) -> inspect.Signature:
    """The signature with the fields of a dataclass in place of `**sizes`."""
    if sizes is None:
        return signature
    fields = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD
            if field.name in sizes.positional
            else inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=field.type,
        )
        for field in dataclasses.fields(sizes)
        if field.name not in signature.parameters
    ]
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    first = [one for one in own if one.kind is not one.KEYWORD_ONLY]
    parameters = first + fields + own[len(first) :]
    return signature.replace(parameters=sorted(parameters, key=lambda one: one.kind))


def _with_fields(documentation: str | None, sizes: type | None) -> str | None:
    """The docstring with what that of a dataclass says of its fields in place of `**sizes`."""
    if sizes is None or documentation is None:
        return documentation
    texts = {}
    for parent in reversed(sizes.__mro__):
        documented = inspect.cleandoc(parent.__doc__ or "")
        section = documented.partition("Attributes:\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n(?=    \w)", section):
            texts[entry.partition(":")[0].strip()] = textwrap.indent(entry, "    ")
    lines = "\n".join(texts[field.name] for field in dataclasses.fields(sizes))
    return re.sub(r" {8}\*\*sizes:.*\n(?: {9,}.*\n)*", lambda _: lines + "\n", documentation)


def _described(value: Any) -> Any:
    if isinstance(value, keras.layers.Layer):
        return serialize_layer(value)
    if isinstance(value, keras.initializers.Initializer | keras.regularizers.Regularizer):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, list | tuple):
        return [_described(part) for part in value]
    return serialize_activation(value) if callable(value) else value


def _made(value: Any, custom_objects: dict | None) -> Any:
    if isinstance(value, dict) and "class_name" in value:
        return keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)
    return [_made(part, custom_objects) for part in value] if isinstance(value, list) else value

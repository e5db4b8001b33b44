"""Copies and configurations of layers."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import keras

from keras_attn.validation import require

_DESCRIBED: ContextVar[bool] = ContextVar("keras_attn_templates_described", default=False)


def copy_layer(layer: keras.layers.Layer, name: str, **changes) -> keras.layers.Layer:
    """Makes an unbuilt layer of the same configuration under another name.

    Args:
        layer: The template: the layer whose configuration is taken.
        name: Name of the copy.
        **changes: Other entries of the configuration to replace.

    Returns:
        The new layer.

    Raises:
        UserError: `layer` is not a layer, or it is built, and the copy would not have its weights.
    """
    require_template(name, layer)
    return type(layer).from_config(layer.get_config() | {"name": name} | changes)


def require_template(name: str, layer: keras.layers.Layer) -> None:
    """Raises unless a layer can be copied without losing weights.

    Args:
        name: Name of the argument.
        layer: The layer.

    Raises:
        UserError: It is not a layer, or it is built.
    """
    require(isinstance(layer, keras.layers.Layer), f"`{name}` must be a layer.", **{name: layer})
    require(
        _DESCRIBED.get() or not (layer.built and layer.weights),
        f"`{name}` must be an unbuilt layer: it is a template, and only its configuration is used, "
        "so its weights would be lost. Pass a new layer, and set the weights of the copy "
        "(`set_weights`) after it is built.",
        **{name: layer.name, "weights": len(layer.weights)},
    )


@contextlib.contextmanager
def templates_described() -> Iterator[None]:
    """Lets templates have weights, because they are made from a configuration, untrained.

    Keras builds a `Sequential` and a functional model as soon as it makes them.
    """
    token = _DESCRIBED.set(True)
    try:
        yield
    finally:
        _DESCRIBED.reset(token)


def serialize_layer(layer: keras.layers.Layer | None) -> dict | None:
    """Describes a layer as what to build another one from.

    Args:
        layer: The layer, or `None`.

    Returns:
        What `keras.saving.deserialize_keras_object` takes, without the shapes that the layer was
        built for: they would make it create weights that nobody uses.
    """
    if layer is None:
        return None
    description = keras.saving.serialize_keras_object(layer)
    description.pop("build_config", None)
    return description

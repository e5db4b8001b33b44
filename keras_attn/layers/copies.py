"""Copies of initialisers and layers that share nothing with the original."""

import inspect

import keras

from keras_attn.validation import require


def separate_initializer(initializer, offset: int):
    """Copies an initialiser, so that two weights of one layer never get the same numbers.

    Args:
        initializer: A `keras.initializers.Initializer`.
        offset: Added to its seed where that is a whole number; one for each weight.

    Returns:
        The copy: unseeded ones draw anew, seeded ones from `seed + offset`. A plain function is
        returned as it is.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += offset
    return type(initializer).from_config(config)


def separate_seed(seed: int | None, offset: int) -> int | None:
    """Moves a seed by `offset`, so that the parts of a layer draw different random numbers."""
    return None if seed is None else seed + offset


def copy_layer(layer: keras.layers.Layer, name: str, **changes) -> keras.layers.Layer:
    """Makes an unbuilt layer of the same configuration under another name.

    Args:
        layer: The layer whose configuration is taken.
        name: Name of the copy.
        **changes: Other entries of the configuration to replace.

    Returns:
        The new layer.

    Raises:
        UserError: `layer` is no layer.
    """
    require(isinstance(layer, keras.layers.Layer), f"`{name}` must be a layer.", **{name: layer})
    return type(layer).from_config(layer.get_config() | {"name": name} | changes)


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


def deserialize_layers(config: dict, *parts: str, custom_objects: dict | None = None) -> dict:
    """Builds the layers that `serialize_layer` described within a configuration.

    Args:
        config: The configuration, which stays as it is.
        *parts: Entries that describe a layer, are `None` or are missing.
        custom_objects: Classes and functions that Keras does not know by their names.

    Returns:
        The configuration with layers for their descriptions.
    """
    return config | {
        part: keras.saving.deserialize_keras_object(config[part], custom_objects=custom_objects)
        for part in parts
        if config.get(part) is not None
    }


def build_self_attention(layer: keras.layers.Layer, shape: tuple) -> None:
    """Builds an attention layer for one sequence that is query, key and value.

    Args:
        layer: An attention layer of this package, or another one with the same call.
        shape: Shape of the sequence.
    """
    value = inspect.signature(layer.build).parameters.get("value_shape")
    if value is not None and value.default is inspect.Parameter.empty:
        layer.build(shape, shape)
    else:
        layer.build(shape)


def build_attention(layer: keras.layers.Layer, shape: tuple, source_shape: tuple) -> None:
    """Builds an attention layer for a sequence and another one that it attends to.

    Args:
        layer: An attention layer of this package, or another one with the same call.
        shape: Shape of the sequence that is the query.
        source_shape: Shape of the sequence that is key and value.
    """
    takes_both = len(inspect.signature(layer.build).parameters) > 1
    layer.build(*((shape, source_shape) if takes_both else (shape,)))

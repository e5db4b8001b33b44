"""Copies of initialisers and layers that share nothing with the original."""

import keras


def separate_initializer(initializer, offset: int):
    """Copies an initialiser, so that two weights of one layer never get the same numbers.

    Args:
        initializer: A `keras.initializers.Initializer`.
        offset: Added to its seed where that is a whole number; one for each weight.

    Returns:
        The copy: unseeded ones draw anew, seeded ones from `seed + offset`.
    """
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += offset
    return type(initializer).from_config(config)


def copy_layer(layer: keras.layers.Layer, name: str, **changes) -> keras.layers.Layer:
    """Makes an unbuilt layer of the same configuration under another name.

    Args:
        layer: The layer whose configuration is taken.
        name: Name of the copy.
        **changes: Other entries of the configuration to replace.

    Returns:
        The new layer.
    """
    return type(layer).from_config(layer.get_config() | {"name": name} | changes)

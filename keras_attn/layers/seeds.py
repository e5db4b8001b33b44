"""Copies of seeds and initializers, one for each weight that draws random numbers."""

import keras


def separate_initializer(initializer, offset: int):
    """Copies an initializer, so that two weights of one layer never get the same numbers.

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

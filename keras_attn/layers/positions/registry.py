"""Registry of relative positions by name."""

import inspect
from collections.abc import Mapping
from typing import Any

from keras_attn.layers.positions.distance_biases import AlibiBias, RelativePositionBias
from keras_attn.layers.positions.relative_positions import RelativePositions
from keras_attn.layers.positions.rotary import RotaryEmbedding
from keras_attn.layers.positions.transformer_xl import TransformerXLPositions
from keras_attn.validation import making, require, require_one_of

POSITIONS: Mapping[str, type[RelativePositions]] = {
    "rotary": RotaryEmbedding,
    "relative_bias": RelativePositionBias,
    "alibi": AlibiBias,
    "transformer_xl": TransformerXLPositions,
}
"""From a name to the class of relative positions."""


def named_positions(
    described: str | Mapping[str, Any], num_heads: int, key_dim: int
) -> RelativePositions:
    """Makes the relative positions of a name.

    Args:
        described: One of `POSITIONS`, or `{"name": …}` with further arguments of its class.
        num_heads: Number of the attention's query heads.
        key_dim: Size of each head's query and key.

    Returns:
        The layer.

    Raises:
        UserError: There are none of that name, or its class has no such argument.
    """
    options = {"name": described} if isinstance(described, str) else dict(described)
    require("name" in options, "`relative_positions` must have a name.", relative_positions=options)
    name = options.pop("name")
    require_one_of("relative_positions", name, POSITIONS)
    what, kind = f"relative_positions {name}", POSITIONS[name]
    sizes = {"num_heads": num_heads, "key_dim": key_dim}
    arguments = known_arguments(what, kind, sizes, {}, options)
    with making(what):
        return kind(**arguments)


def known_arguments(
    what: str,
    kind: type,
    sizes: Mapping[str, Any],
    defaults: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Joins the arguments of a constructor.

    Args:
        what: Name of what is made, for the message.
        kind: The class.
        sizes: Arguments that count only where the constructor has them.
        defaults: Arguments in place of the class's own defaults.
        options: Arguments in place of both, which must not be sizes.

    Returns:
        The arguments by name.

    Raises:
        UserError: The constructor has no argument of the name of an option.
    """
    names = dict.fromkeys([*inspect.signature(kind).parameters, *defaults])
    for option in options:
        known = [name for name in names if name not in ("kwargs", *sizes)]
        require_one_of(f"argument of the {what}", option, known)
    return {size: sizes[size] for size in sizes if size in names} | {**defaults, **options}

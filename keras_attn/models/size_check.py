"""Limits on the sizes of models, checked before they are built."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras

from keras_attn.limits import LAYERS, PARAMETERS
from keras_attn.models.parameter_count import parameter_count
from keras_attn.tensors import Tensor
from keras_attn.validation import require

_COUNTS_LAYERS = re.compile(r"(^|_)(layers|blocks|hashes|rounds)$")
# Two sizes of a smaller product make no matrix that is worth the time to count.
_LARGE_MATRIX = 2**28


def check_sizes(
    arguments: Mapping[str, Any],
    make: Callable[[], keras.Model],
    in_file: int | None = None,
    most_layers: int | None = None,
) -> None:
    """Refuses a model that is too large, before it takes memory.

    Args:
        arguments: What the model is built of, configurations of layers among them.
        make: Builds it.
        in_file: Number of parameters in the file of its weights, if there is one.
        most_layers: Most layers that such a file can hold.

    Raises:
        UserError: It has too many layers or parameters, or more than the file.
    """
    sizes = list(_numbers(arguments))
    for name, size in sizes:
        if _COUNTS_LAYERS.search(name):
            LAYERS.check(size, f"`{name}`={size}")
            require(
                most_layers is None or size <= most_layers,
                f"`{name}` must not exceed the {most_layers} arrays of the weights file.",
                **{name: size},
            )
    first, second = sorted([0, 0, *(size for _, size in sizes)])[-2:]
    if first * second <= _LARGE_MATRIX:
        return
    largest = dict(sorted(sizes, key=lambda size: size[1])[-2:])
    count = parameter_count(make)
    PARAMETERS.check(count, f"A model of {_written(largest)} has {count:,} parameters")
    require(
        in_file is None or count <= in_file,
        "The model must not have more parameters than the weights file.",
        parameters=count,
        in_file=in_file,
        **largest,
    )


def _written(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _numbers(content: Tensor, name: str = "") -> Iterator[tuple[str, int]]:
    """The whole numbers in nested configurations, by the nearest name."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _numbers(value, str(key))
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _numbers(value, name)
    elif isinstance(content, int) and not isinstance(content, bool) and "seed" not in name:
        yield name, content

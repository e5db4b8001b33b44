"""Weights that a training does not change, named by patterns of their paths."""

import contextlib
import fnmatch
from collections.abc import Iterator, Sequence

import keras

from keras_attn.training.reporting.description import count_parameters
from keras_attn.validation import UserError, require

_SHOWN = 8


@contextlib.contextmanager
def frozen(model: keras.Model, patterns: Sequence[str]) -> Iterator[str]:
    """Removes weights from `model.trainable_variables` inside a context.

    Args:
        model: The model.
        patterns: Patterns of whole paths: `*` matches any characters, including slashes, `?`
            for one and `[01]` for one of several.

    Yields:
        A line that says how many weights are frozen; "" without patterns.

    Raises:
        UserError: A pattern matches no weight that is trained, or nothing is left to train.
    """
    trained = model.trainable_variables
    chosen = []
    for pattern in patterns:
        found = [weight for weight in trained if fnmatch.fnmatchcase(weight.path, pattern)]
        if not found:
            raise UserError(
                "`freeze` must match weights that are trained, as "
                f"{_examples([weight.path for weight in trained])} do. Received: {pattern!r}."
            )
        chosen += [weight for weight in found if all(weight is not one for one in chosen)]
    require(
        len(chosen) < len(trained),
        "`freeze` must leave weights to train.",
        freeze=list(patterns),
        weights=len(trained),
    )
    for weight in chosen:
        weight.trainable = False
    try:
        yield (
            f"Frozen: {len(chosen)} of {len(trained)} weights, {count_parameters(chosen):,} of "
            f"{count_parameters(trained):,} parameters."
            if chosen
            else ""
        )
    finally:
        for weight in chosen:
            weight.trainable = True


def _examples(paths: list[str]) -> str:
    """Patterns of the first parts of paths."""
    first = list(dict.fromkeys(path.partition("/")[0] for path in paths))
    listed = ", ".join(f"'{part}/*'" for part in first[:_SHOWN])
    return listed + (f" and {len(first) - _SHOWN} more" if len(first) > _SHOWN else "")

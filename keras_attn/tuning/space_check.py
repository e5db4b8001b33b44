"""Checks of a search space before the first trial."""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras_tuner

from keras_attn.recipes import merged
from keras_attn.training.resolving import check
from keras_attn.training.run_settings import RunSettings
from keras_attn.tuning.search_space import SearchSpace
from keras_attn.validation import UserError

_TRIES = 200


def check_space(space: SearchSpace, settings: Mapping[str, Any]) -> None:
    """Raises where a run could have a value of the space with no values of the others.

    Each value, and each end of a range, is tried by the checks of a run that read no data and build
    no model.

    Args:
        space: What is varied.
        settings: Nested settings that all trials share.

    Raises:
        UserError: What the checks of a run say of the first such value.
    """
    declared = keras_tuner.HyperParameters()
    space.draw(declared)
    dice = random.Random(1)

    def drawn() -> Iterator[dict[str, Any]]:
        for _ in range(_TRIES):
            yield {one.name: one.prob_to_value(dice.random()) for one in declared.space}

    def works(candidates: Iterable[dict[str, Any]]) -> dict[str, Any]:
        mistake = None
        for values in candidates:
            declared.values = values
            try:
                check(RunSettings.resolve(merged(settings, space.draw(declared))))
                return values
            except UserError as error:
                mistake = mistake or error
        raise mistake

    good = works(drawn())
    for one in declared.space:
        for value in _values(one):
            # With what works otherwise first: if that does not, it is by this value.
            tried = itertools.chain([good], drawn())
            works(values | {one.name: value} for values in tried)


def _values(dimension: Any) -> list[Any]:
    if isinstance(dimension, keras_tuner.engine.hyperparameters.Choice):
        return list(dimension.values)
    return [dimension.min_value, dimension.max_value]

"""The context of a forecast on a scale of its own."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops import windows

_FARTHEST = 5  # deviations that the context is from the center
_WEIGHT_OF_USUAL = 8  # of the usual variance of a context, that of its own being 1


class ScaledWindow(NamedTuple):
    """A window on the scale of its context, or on one nearer to the usual scale.

    Attributes:
        values: Targets and unknown covariates, (batch, context, channels), 0 where one is missing.
        observed: 1 where a value is known, else 0, of the same shape.
        of_targets: What the linear forecast is made from: the values of the targets, and after the
            last step their usual value where there is one; (batch, context or one more, targets).
        mean: Means of the targets, (batch, 1, targets), NaN without a value.
        deviation: The scales of the targets, (batch, 1, targets).
    """

    values: Any
    observed: Any
    of_targets: Any
    mean: Any
    deviation: Any


def read_window(inputs: Mapping[str, Any], targets: int, unknown: int = 0) -> ScaledWindow:
    """Puts the context of a window on the scale that a `Forecaster` computes with.

    Args:
        inputs: What a `Forecaster` is called with.
        targets: Number of targets.
        unknown: Number of unknown covariates.
    """
    own = inputs["past"][..., : targets + unknown]
    mean, deviation = windows.window_statistics(own)
    if "scale" in inputs:
        usual = ops.pad(inputs["scale"], [[0, 0], [0, unknown]])[:, None]
        squares = ops.square(deviation) + _WEIGHT_OF_USUAL * ops.square(usual)
        both = ops.sqrt(squares / (1 + _WEIGHT_OF_USUAL))
        deviation = ops.where((usual > 0) & (deviation > 0), both, deviation)
    values, observed = windows.standardized(own, mean, deviation)
    mean, deviation, of_targets = (each[..., :targets] for each in (mean, deviation, values))
    if "center" in inputs:
        center, _ = windows.standardized(inputs["center"][:, None], mean, deviation)
        center = ops.clip(center, -_FARTHEST, _FARTHEST)
        of_targets = ops.concatenate([of_targets, center], axis=1)
    return ScaledWindow(values, observed, of_targets, mean, deviation)

"""The context of a forecast on a scale of its own."""

from collections.abc import Mapping, Sequence
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
        center: Usual values of the targets, (batch, 1, targets), if there are any.
        known: Known covariates around their mean in the context, (batch, context + horizon, known),
            if there are any.
        mean: Means of the targets, (batch, 1, targets), NaN without a value.
        deviation: The scales of the targets, (batch, 1, targets).
    """

    values: Any
    observed: Any
    center: Any
    known: Any
    mean: Any
    deviation: Any

    def steps(self, across: bool) -> Any:
        """What a linear forecast is made from: values of each step, after the last one the center.

        Args:
            across: Whether each target is forecast from all channels, not from its own alone.

        Returns:
            (batch, context or one more, channels), without `across` of the targets alone.
        """
        targets, channels = self.mean.shape[-1], self.values.shape[-1]
        if self.center is None:
            return self.values if across else self.values[..., :targets]
        center = ops.pad(self.center, [[0, 0], [0, 0], [0, channels - targets]])
        steps = ops.concatenate([self.values, center], axis=1)
        return steps if across else steps[..., :targets]


def read_window(
    inputs: Mapping[str, Any], targets: int, unknown: int = 0, known_scales: Sequence[float] = ()
) -> ScaledWindow:
    """Puts a window on the scale that a `Forecaster` computes with.

    Args:
        inputs: What a `Forecaster` is called with.
        targets: Number of targets.
        unknown: Number of unknown covariates.
        known_scales: Standard deviation of each known covariate.
    """
    own, known = inputs["past"][..., : targets + unknown], None
    mean, deviation = windows.window_statistics(own)
    if "scale" in inputs:
        usual = ops.pad(inputs["scale"], [[0, 0], [0, unknown]])[:, None]
        squares = ops.square(deviation) + _WEIGHT_OF_USUAL * ops.square(usual)
        both = ops.sqrt(squares / (1 + _WEIGHT_OF_USUAL))
        deviation = ops.where((usual > 0) & (deviation > 0), both, deviation)
    values, observed = windows.standardized(own, mean, deviation)
    mean, deviation, center = mean[..., :targets], deviation[..., :targets], None
    if "center" in inputs:
        center, _ = windows.standardized(inputs["center"][:, None], mean, deviation)
        center = ops.clip(center, -_FARTHEST, _FARTHEST)
    if known_scales:
        past = inputs["past"][..., targets + unknown :]
        steps = ops.concatenate([past, inputs["future"]], axis=1)
        steps = (steps - windows.window_statistics(past)[0]) / ops.convert_to_tensor(
            known_scales, "float32"
        )
        known = ops.where(ops.isnan(steps), 0, steps)
    return ScaledWindow(values, observed, center, known, mean, deviation)

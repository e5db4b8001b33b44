"""A forecaster of series: an encoder over patches of time beside a linear forecast."""

import dataclasses
from collections.abc import Sequence

import keras
from keras import ops

from keras_attn.layers.attached_mask import AttachedMask
from keras_attn.layers.dense import Dense
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import read_options
from keras_attn.models.forecast.scaled_window import read_window
from keras_attn.models.transformer.sizes import TransformerParts, TransformerSizes
from keras_attn.ops import windows
from keras_attn.validation import is_real, require, require_positive

_MOST_ACROSS = 512  # values of a context that the forecast of each target is made from

QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Levels that are forecast by default."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForecasterSizes(TransformerSizes):
    """`TransformerSizes` with the defaults of a small forecaster."""

    num_layers: int = 2
    hidden_dim: int = 32
    num_heads: int = 4
    intermediate_dim: int = 64
    activation: str = "gelu"
    dropout: float = 0.2
    norm_first: bool = True


@keras.saving.register_keras_serializable(package="keras_attn")
class Forecaster(Backbone):
    """Forecasts quantiles of series, all steps of the horizon at once.

    Context and horizon are one sequence of patches of time, in which the targets of the horizon are
    missing; a stack of encoder blocks fills in their quantiles. A linear forecast from all values
    of the context and all known covariates is added; both begin at 0, the mean of the context
    (a run of the task `forecast` begins with a ridge regression). Everything is computed on the
    scale of the context's own values, so that a series may have any level and scale.

    Args:
        context: Number of steps that are read.
        horizon: Number of steps that are forecast.
        targets: Number of series that are forecast together.
        unknown: Number of covariates that are known until the horizon begins, such as a price.
        known_scales: Standard deviation of each covariate that is known in the horizon as well,
            such as holidays; none by default.
        scales: Usual standard deviation of each target within a context. The scale is then mostly
            that, since a few steps show their own only roughly. By default it is not known, as for
            several series of different scales.
        centers: Usual value of each target, to which a series returns from above and from below, if
            there is one; needs `scales`.
        quantiles: Levels to forecast, increasing, with 0.5 among them.
        patch_length: Number of steps in a patch, the unit of attention.
        learned_positions: Whether each patch has a learned vector, instead of sinusoids.
        attention: Attention layer to build that of every block from, multi-head by default.
        **kwargs: Fields of `ForecasterSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"past": float32 (batch, context, channels), "future": float32 (batch, horizon,
            known)}`. The channels are targets, unknown and known covariates, in this order, NaN
            where a value is missing. `future` are the known covariates in the horizon; without any
            there is no such input. With `scales` and `centers` there may be `"scale"` and
            `"center"`, float32 (batch, targets), others for windows in another unit.

    Returns:
        float32 (batch, horizon, targets, quantiles), increasing along the quantiles, in the unit of
        the targets: a constant context is continued as it is, and the forecast is NaN if it has no
        value.

    Raises:
        UserError: A size is not positive, or `quantiles` are not increasing numbers between 0 and 1
            with 0.5 among them.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = Forecaster(context=6, horizon=4, quantiles=(0.1, 0.5, 0.9), **sizes)
        >>> model({"past": np.arange(12.0).reshape(2, 6, 1)}).shape
        (2, 4, 1, 3)

    References:
        Nie et al., 2023, https://arxiv.org/abs/2211.14730, section 3.1: patches of time.
        Zeng et al., 2023, https://arxiv.org/abs/2205.13504, section 4: the linear forecast.
        Kim et al., 2022, https://openreview.net/forum?id=cGDAkQo1C0p: the scale of the context.
        Chernozhukov et al., 2010, https://arxiv.org/abs/0704.3649: sorted quantiles.
    """

    input_name = "past"
    optional_inputs = ("scale", "center")

    sizes = ForecasterSizes

    def __init__(
        self,
        context: int,
        horizon: int,
        targets: int = 1,
        unknown: int = 0,
        known_scales: Sequence[float] = (),
        scales: Sequence[float] = (),
        centers: Sequence[float] = (),
        quantiles: Sequence[float] = QUANTILES,
        patch_length: int = 1,
        learned_positions: bool = True,
        *,
        attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        require_positive(
            context=context, horizon=horizon, targets=targets, patch_length=patch_length
        )
        quantiles = checked_quantiles(quantiles)
        require(
            len(scales) in (0, targets) and all(is_real(scale) and scale > 0 for scale in scales),
            "`scales` must be positive, one for each target.",
            scales=scales,
            targets=targets,
        )
        require(
            len(centers) in (0, len(scales)),
            "`centers` must have one for each of `scales`.",
            centers=centers,
            scales=scales,
        )
        sizes, dtype, kwargs = read_options(ForecasterSizes, kwargs)
        steps = -(-horizon // patch_length) * patch_length  # of whole patches
        length = -(-context // patch_length) + steps // patch_length
        learned = length if learned_positions and sizes.absolute_positions else None
        sizes = dataclasses.replace(sizes, learned_positions=learned)
        known, channels = len(known_scales), targets + unknown + len(known_scales)

        # === Layers ===
        parts = TransformerParts(sizes, dtype)
        attach = AttachedMask(dtype=dtype, name="visible")
        embedding = Dense(sizes.hidden_dim, dtype=dtype, name="patches")
        stack = parts.encoder(lambda inputs: attach([embedding(inputs[0]), inputs[1]]), attention)
        shape = (steps // patch_length, patch_length * targets * len(quantiles))
        output = Dense(shape[1], kernel_initializer="zeros", dtype=dtype, name="output")
        spread = LearnedPositionEmbedding(
            horizon, embeddings_initializer="zeros", dtype=dtype, name="spread"
        )
        across = (targets + unknown) * context <= _MOST_ACROSS
        linear, of_known = (
            keras.layers.EinsumDense(
                equation, (horizon, targets), kernel_initializer="zeros", dtype=dtype, name=name
            )
            for name, equation in (
                ("linear", "bcs,csht->bht" if across else "bct,cht->bht"),
                ("linear_known", "bsk,skht->bht"),
            )
        )

        # === Functional graph ===
        inputs = {"past": keras.Input((context, channels), dtype="float32", name="past")}
        if known:
            inputs["future"] = keras.Input((horizon, known), dtype="float32", name="future")
        for name, values in (("scale", scales), ("center", centers)):
            if values:
                inputs[name] = keras.Input((targets,), dtype="float32", name=name)
        scaled = read_window(inputs, targets, unknown, known_scales)
        sequence = [
            ops.pad(each, [[0, 0], [0, steps], [0, 0]]) for each in (scaled.values, scaled.observed)
        ]
        if known:
            sequence.append(ops.pad(scaled.known, [[0, 0], [0, steps - horizon], [0, 0]]))
        if centers:
            sequence.append(ops.repeat(scaled.center, context + steps, axis=1))
        has_target = ops.pad(
            ops.max(scaled.observed[..., :targets], axis=-1, keepdims=True),
            [[0, 0], [0, steps], [0, 0]],
            constant_values=1,
        )
        visible = ops.any(windows.patches(has_target, patch_length) > 0, axis=-1)
        vectors = stack([windows.patches(ops.concatenate(sequence, -1), patch_length), visible])
        ahead = output(vectors[:, -shape[0] :])
        ahead = spread(ops.reshape(ahead, (-1, steps, targets * len(quantiles)))[:, :horizon])
        ahead = ops.reshape(ahead, (-1, horizon, targets, len(quantiles)))
        middle = linear(scaled.steps(across))
        if known:
            # What was known of the context explains values that the forecast must not continue.
            middle += of_known(scaled.known)
        # The smaller term first: as the second one, Keras takes it for a bias where sizes agree.
        ahead = ops.cast(middle, "float32")[..., None] + ops.cast(ahead, "float32")
        standard = ops.sort(ahead, axis=-1)
        mean, deviation = scaled.mean[..., None], scaled.deviation[..., None]
        super().__init__(inputs, mean + standard * deviation, **kwargs)

        # === Config ===
        self.context, self.horizon, self.targets, self.unknown = context, horizon, targets, unknown
        self.known_scales, self.quantiles = list(known_scales), list(quantiles)
        self.scales, self.centers = list(scales), list(centers)
        self.patch_length, self.reads_across = patch_length, across
        self.hidden_dim = sizes.hidden_dim
        self._take_parts(stack)
        self.max_length = length

    @property
    def usual(self) -> dict[str, list[float]]:
        """The usual values that are known, by the name of their input."""
        found = {"scale": self.scales, "center": self.centers}
        return {name: values for name, values in found.items() if values}

    def _completed(self, inputs):
        missing = {name: values for name, values in self.usual.items() if name not in inputs}
        if not missing:
            return inputs
        given = {
            name: x if isinstance(x, keras.KerasTensor) else ops.convert_to_tensor(x, "float32")
            for name, x in inputs.items()
        }
        zeros = ops.zeros_like(given["past"][:, 0, : self.targets])
        return given | {
            name: zeros + ops.convert_to_tensor(values, "float32")
            for name, values in missing.items()
        }


def checked_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Returns levels of quantiles, checked.

    Args:
        quantiles: The levels.

    Raises:
        UserError: They are not increasing numbers between 0 and 1 with 0.5 among them.
    """
    levels = [quantiles] if not isinstance(quantiles, list | tuple) else list(quantiles)
    right = all(is_real(level) and 0 < level < 1 for level in levels)
    require(
        right and 0.5 in levels and levels == sorted(set(levels)),
        "`quantiles` must be increasing numbers between 0 and 1 with 0.5 among them.",
        quantiles=quantiles,
    )
    return tuple(float(level) for level in levels)

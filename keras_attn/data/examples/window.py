"""Windows of series: what comes before a forecast, and what is forecast."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data.examples.base import Batch, Examples, Signature
from keras_attn.data.series.series import SeriesPart, SeriesTable
from keras_attn.validation import UserError

_CHUNK = 4096  # windows whose statistics are computed at once
_CONSTANT = 1e-9
_LEAST_COMMON = 2  # steps with a value in both windows of a mixture


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of series, read from the series as they are needed.

    Attributes:
        content: All steps of all series, float64 (steps, channels), NaN where a value is missing,
            with a context of missing values before each series and a horizon after it.
        firsts: First step of each window, int64 (windows,).
        context: Number of steps before a forecast.
        horizon: Number of steps that are forecast.
        targets: Number of targets, the first channels.
        known: Number of covariates that are known in the horizon, the last channels.
        scales: Usual deviation of each target within a context, if there is one for all series.
        centers: Usual value of each target, if there is one.
        tokens: What a window counts in a batch.
    """

    content: np.ndarray
    firsts: np.ndarray
    context: int
    horizon: int
    targets: int
    known: int
    scales: tuple[float, ...] = ()
    centers: tuple[float, ...] = ()
    tokens: int = 1

    @classmethod
    def of(
        cls, table: SeriesTable, series: np.ndarray, begins: np.ndarray, context: int, horizon: int
    ) -> "Windows":
        """Lists windows by the series and the first step of the horizon of each."""
        channels = len(table.channels)
        before, after = (np.full((steps, channels), np.nan) for steps in (context, horizon))
        parts = [part for values in table.values for part in (before, values, after)]
        lengths = np.array([len(values) + context + horizon for values in table.values])
        offsets = np.cumsum(lengths) - lengths
        firsts = offsets[series] + begins
        content = np.concatenate(parts)
        return cls(content, firsts, context, horizon, table.targets, table.known)

    def __len__(self) -> int:
        return len(self.firsts)

    def begins(self, table: SeriesTable, series: np.ndarray) -> np.ndarray:
        """First step of each horizon in its series.

        Args:
            table: The series that the windows are of.
            series: The series of each window, (windows,).
        """
        lengths = np.array([len(values) + self.context + self.horizon for values in table.values])
        return self.firsts - (np.cumsum(lengths) - lengths)[series]

    def release(self) -> None:
        """Does nothing: series are in memory."""

    def select(self, rows: np.ndarray) -> "Windows":
        """Some of the windows, by their indices or whether each is kept."""
        return dataclasses.replace(self, firsts=self.firsts[rows])

    @property
    def lengths(self) -> np.ndarray:
        """Length of each window in a batch, (windows,) int64."""
        return self.lengths_of(np.arange(len(self)))

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some windows, (count,) int64."""
        return np.full(len(rows), self.tokens, np.int64)

    def past(self, rows: np.ndarray) -> np.ndarray:
        """The steps before the forecasts, float64 (count, context, channels)."""
        return self._steps(rows, 0, self.context)

    def future(self, rows: np.ndarray) -> np.ndarray:
        """The known covariates of the horizons, float64 (count, horizon, known)."""
        steps = self._steps(rows, self.context, self.horizon)
        return steps[..., steps.shape[-1] - self.known :]

    def actual(self, rows: np.ndarray) -> np.ndarray:
        """The targets of the horizons, float64 (count, horizon, targets)."""
        return self._steps(rows, self.context, self.horizon)[..., : self.targets]

    def statistics(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of targets and unknown covariates in the contexts.

        Args:
            rows: Indices of the windows, (count,).

        Returns:
            Both float64 (count, 1, channels without known ones); the deviation of constant values
            is 0, the mean without any value NaN.
        """
        past = self.past(rows)
        past = past[..., : past.shape[-1] - self.known]
        known = ~np.isnan(past)
        count = np.maximum(known.sum(axis=1, keepdims=True), 1)
        mean = np.where(known, past, 0).sum(axis=1, keepdims=True) / count
        squares = np.where(known, past - mean, 0) ** 2
        deviation = np.sqrt(squares.sum(axis=1, keepdims=True) / count)
        deviation[deviation <= _CONSTANT * np.abs(mean)] = 0
        return np.where(known.any(axis=1, keepdims=True), mean, np.nan), deviation

    def _steps(self, rows: np.ndarray, begin: int, count: int) -> np.ndarray:
        return self.content[self.firsts[rows][:, None] + begin + np.arange(count)]


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowExamples(Examples):
    r"""Windows of series for a forecaster, each on the scale of its own context.

    A batch is `({"past": (rows, context, channels), "future": (rows, horizon, known), "scale":
    (rows, targets), "center": (rows, targets)}, labels (rows, horizon, targets))`, all float32;
    missing labels and those of padding are NaN. Without known covariates there is no "future",
    without scales no "scale", without centers no "center".

    In training a part of the windows are mixtures of two, which differ from epoch to epoch: sums
    with the cosine and the sine of a random angle as weights, so that a mixture varies as much as a
    window; what has too few values in common with the other stays as it is. It is mixup for series:
    what a series does in answer to its past, a sum of series does too if that is linear, and a
    model learns it from fewer windows.

    Attributes:
        window: The windows.
        mixed: Fraction of the windows that are mixtures.
        seed: Determines the mixtures together with the epoch.
        season: Number of steps of a season of the series.
        partners: The other window of each mixture, and the weights of both, in an epoch.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("steps.csv").write_text("y\n" + "\n".join("135798642") + "\n")
        >>> table = read_series("steps.csv")
        >>> examples = WindowExamples.from_part(
        ...     SeriesPart.whole(table), context=4, horizon=2, least=4
        ... )
        >>> inputs, labels = examples.assemble([0])
        >>> [round(float(value), 2) for value in (*inputs["past"].flat, *labels.flat)]
        [-1.34, -0.45, 0.45, 1.34, 2.24, 1.79]

    References:
        Zhang et al., 2018, https://arxiv.org/abs/1710.09412; for series Ansari et al., 2024,
        https://arxiv.org/abs/2403.07815, section 4.1.
    """

    window: Windows
    mixed: float = 0.0
    seed: int = 0
    season: int = 1
    partners: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    kind: ClassVar = "step"
    _sides = ("window",)

    @classmethod
    def from_part(
        cls,
        part: SeriesPart,
        context: int,
        horizon: int,
        least: int = 1,
        tokens: int = 1,
        scales: Sequence[float] = (),
        centers: Sequence[float] = (),
        mixed: float = 0.0,
        seed: int = 0,
    ) -> "WindowExamples":
        """Lists the windows whose horizon lies in a part of series.

        Args:
            part: The part.
            context: Number of steps before a forecast; missing ones where the series begins later.
            horizon: Number of steps that are forecast.
            least: Fewest steps of the series before a forecast.
            tokens: What a window counts in a batch.
            scales: Usual deviation of each target within a context, if there is one for all series.
            centers: Usual value of each target, if there is one.
            mixed: Fraction of the windows that are mixtures.
            seed: Determines the mixtures.

        Returns:
            The windows; those with a constant context or without a target are left out and counted.

        Raises:
            UserError: No window is left.
        """
        series, begins = part.origins(horizon, max(least, 1))
        windows = Windows.of(part.table, series, begins, context, horizon)
        windows = dataclasses.replace(
            windows, tokens=tokens, scales=tuple(scales), centers=tuple(centers)
        )
        keep = _usable(windows)
        if not keep.any():
            longest = int((part.ends - part.begins).max(initial=0))
            why = f"the longest part has {longest} steps to forecast"
            if len(keep):
                why = f"all of {len(keep):,} have a constant context or no target"
            hint = " Set a smaller `data.horizon`." if horizon > 1 and not len(keep) else ""
            raise UserError(
                f"{part.name}: no window of {least} steps and a horizon of {horizon} is left: "
                f"{why}.{hint}"
            )
        windows = windows.select(keep)
        count, used = len(part.ends), len(np.unique(series[keep]))
        unused = f"{count - used:,} of {count:,} series have no window of {least} steps and a "
        unused += f"horizon of {horizon} to learn from"
        return cls(
            window=windows,
            mixed=mixed,
            seed=seed,
            season=part.season,
            indices=np.flatnonzero(keep),
            name=part.name,
            notes=(unused,) if used < count else (),
        )

    @property
    def signature(self) -> Signature:
        """Specifications of a batch, of the windows' sizes."""
        window = self.window
        channels = window.content.shape[1]
        specs = {"past": tf.TensorSpec([None, window.context, channels], tf.float32)}
        if window.known:
            specs["future"] = tf.TensorSpec([None, window.horizon, window.known], tf.float32)
        for name, values in (("scale", window.scales), ("center", window.centers)):
            if values:
                specs[name] = tf.TensorSpec([None, window.targets], tf.float32)
        return specs, tf.TensorSpec([None, window.horizon, window.targets], tf.float32)

    def of_epoch(self, epoch: int) -> "WindowExamples":
        """The same windows with the mixtures of that epoch."""
        if not self.mixed:
            return self
        draw = np.random.default_rng([self.seed, epoch])
        angles = draw.uniform(-np.pi / 2, np.pi / 2, len(self))
        angles[draw.random(len(self)) >= self.mixed] = 0
        partners = (draw.integers(len(self), size=len(self)), np.cos(angles), np.sin(angles))
        return dataclasses.replace(self, partners=partners)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        parts = self._standard(rows)
        if self.partners is not None:
            others, *weights = (each[rows] for each in self.partners)
            mixed = np.flatnonzero(weights[1])
            partners = self._standard(others[mixed])
            # A mixture has the values that both have: few may be none.
            known = ~np.isnan(parts["past"][mixed] + partners["past"])[..., : self.window.targets]
            enough = (known.sum(axis=1) >= _LEAST_COMMON).all(axis=1)
            mixed, partners = mixed[enough], {name: x[enough] for name, x in partners.items()}
            first, second = (weight[mixed, None, None] for weight in weights)
            for name, other in partners.items():
                if name == "scale":
                    parts[name][mixed] = np.hypot(first * parts[name][mixed], second * other)
                else:
                    parts[name][mixed] = first * parts[name][mixed] + second * other
        batch = {
            name: np.full(
                (shape[0], *part.shape[1:]), np.nan if name == "labels" else 0, np.float32
            )
            for name, part in parts.items()
        }
        for name, part in parts.items():
            batch[name][: len(rows)] = part
        labels = batch.pop("labels")
        for name in {"center", "scale"} & set(batch):
            batch[name] = batch[name][:, 0]
        return batch, labels

    def _standard(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs and labels of windows, targets and unknown covariates standardized, of rank 3."""
        window = self.window
        past, actual = window.past(rows), window.actual(rows)
        mean, deviation = window.statistics(rows)
        deviation = np.where(deviation > 0, deviation, 1)
        past[..., : mean.shape[-1]] -= mean
        past[..., : mean.shape[-1]] /= deviation
        mean, deviation = mean[..., : window.targets], deviation[..., : window.targets]
        parts = {"past": past, "labels": (actual - mean) / deviation}
        if window.known:
            parts["future"] = window.future(rows)
        if window.scales:
            parts["scale"] = np.array(window.scales) / deviation
        if window.centers:
            parts["center"] = (np.array(window.centers) - mean) / deviation
        return parts


def _usable(windows: Windows) -> np.ndarray:
    """Whether a window has a target to forecast from a context that is not constant, (windows,)."""
    keep = np.zeros(len(windows), bool)
    for begin in range(0, len(windows), _CHUNK):
        rows = np.arange(begin, min(begin + _CHUNK, len(windows)))
        varies = windows.statistics(rows)[1][:, 0, : windows.targets] > 0
        keep[rows] = (varies & ~np.isnan(windows.actual(rows)).all(axis=1)).any(axis=1)
    return keep

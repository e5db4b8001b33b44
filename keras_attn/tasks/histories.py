"""Histories of series as inputs of a forecaster, checked."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_attn.validation import UserError, require

_ROWS = 256  # of a batch


@dataclasses.dataclass(frozen=True)
class Histories:
    """The form of a forecaster's inputs.

    Attributes:
        targets: Number of targets, the first channels.
        channels: Number of channels.
        known: Number of covariates that are known in the horizon, the last channels.
        horizon: Number of steps that are forecast.
    """

    targets: int
    channels: int
    known: int
    horizon: int

    def forecast(
        self,
        call: Callable[[np.ndarray, np.ndarray | None], np.ndarray],
        past: Any,
        future: Any,
        longest: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> np.ndarray:
        """Forecasts in batches.

        Args:
            call: From past and future of a batch to its forecasts.
            past: Histories, see `ForecastTask.predict`.
            future: Known covariates.
            longest: Number of steps that are read at most, if it is known.
            progress: Called with the number of series done after each batch.

        Returns:
            The forecasts of all series.

        Raises:
            UserError: The inputs have other shapes, or a history has no value of a target.
        """
        rows = self._rows(past, longest)
        require(bool(rows), "`past` must have at least one history.", past=0)
        require(
            (future is not None) == bool(self.known),
            f"`future` must have the {self.known} known covariates of the next {self.horizon} "
            "steps."
            if self.known
            else "The model has no known covariates for `future`.",
            future=None if future is None else np.shape(future),
        )
        after = None if future is None else self.future(future)
        require(
            after is None or len(after) == len(rows),
            "`past` and `future` must have equal numbers of series.",
            past=len(rows),
            future=0 if after is None else len(after),
        )
        found = []
        for begin in range(0, len(rows), _ROWS):
            batch = slice(begin, begin + _ROWS)
            steps = max(map(len, rows[batch]))
            values = self.past(rows[batch], steps if longest is None else min(steps, longest))
            found.append(call(values, None if after is None else after[batch]))
            if progress:
                progress(len(found[-1]))
        return np.concatenate(found)

    def past(self, rows: Sequence[Any], steps: int) -> np.ndarray:
        """The last steps of histories, missing ones before those of shorter ones.

        Returns:
            float64 (histories, steps, channels).
        """
        padded = np.full((len(rows), steps, self.channels), np.nan)
        for place, history in enumerate(self._rows(rows)):
            kept = history[-steps:]
            padded[place, steps - len(kept) :] = kept
        return padded

    def future(self, rows: Any) -> np.ndarray:
        """Known covariates of horizons, float64 (histories, horizon, known)."""
        values = _numbers("future", rows)
        values = values[..., None] if values.ndim == 2 and self.known == 1 else values
        require(
            values.shape[1:] == (self.horizon, self.known),
            f"`future` must have the shape (batch, {self.horizon}, {self.known}).",
            future=values.shape,
        )
        return values

    def _rows(self, past: Any, longest: int | None = None) -> list[np.ndarray]:
        rows = []
        for number, history in enumerate(past):
            values = _numbers("past", history)
            values = values[:, None] if values.ndim == 1 and self.channels == 1 else values
            require(
                values.ndim == 2 and len(values) > 0 and values.shape[1] == self.channels,
                f"A history must have the shape (steps, {self.channels}).",
                history=number,
                shape=values.shape,
            )
            read = values if longest is None else values[-longest:]
            empty = np.isnan(read[:, : self.targets]).all(axis=0)
            require(
                not empty.any(),
                "A history must have a value of each target among the steps that are read.",
                history=number,
                target_without_values=int(empty.argmax()),
            )
            rows.append(values)
        return rows


def last_values(values: np.ndarray) -> np.ndarray:
    """The last observed value of each channel.

    Args:
        values: float (histories, steps, channels), NaN where a value is missing.

    Returns:
        float (histories, 1, channels).
    """
    last = values.shape[1] - 1 - np.argmax(~np.isnan(values[:, ::-1]), axis=1)
    return np.take_along_axis(values, last[:, None], axis=1)


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"`{name}` must be arrays of numbers: {error}.") from None
    require(not np.isinf(array).any(), f"`{name}` must be finite or NaN.")
    return array

"""Series of numbers on equal steps of time, and parts of them."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_attn.data.series.columns import OF_VALUES
from keras_attn.data.series.times import TimeAxis


@dataclasses.dataclass(frozen=True, eq=False)
class SeriesTable:
    r"""Series of the same columns.

    Attributes:
        ids: What each series is called; "" for the only one.
        values: The values of each series, float64 (steps, channels), NaN where one is missing; the
            channels are targets, unknown and known covariates.
        starts: Position of the first step of each series on the axis.
        axis: The steps.
        columns: Names of the columns by role.
        name: Where they come from, for messages.
        skipped: Number of malformed rows that were left out.
        notes: Lines for users about how they were read.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("sales.csv").write_text("date,sales\n2024-01,5\n2024-02,7\n")
        >>> table = read_series("sales.csv")
        >>> table.channels, len(table), table.time(0, 2)
        (('sales',), 2, '2024-03')
    """

    ids: list[str]
    values: list[np.ndarray]
    starts: list[float]
    axis: TimeAxis
    columns: Mapping[str, tuple[str, ...]]
    name: str = "series"
    skipped: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of steps of all series."""
        return sum(map(len, self.values))

    @property
    def targets(self) -> int:
        """Number of targets."""
        return len(self.columns["target"])

    @property
    def known(self) -> int:
        """Number of covariates that are known in the horizon."""
        return len(self.columns.get("known", ()))

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels."""
        return tuple(name for role in OF_VALUES for name in self.columns.get(role, ()))

    def ends(self) -> np.ndarray:
        """Where the observed targets of each series end, int64: what follows is the future."""
        return np.array(
            [
                int(np.flatnonzero(observed)[-1]) + 1 if observed.any() else 0
                for observed in (
                    ~np.isnan(values[:, : self.targets]).all(axis=1) for values in self.values
                )
            ],
            np.int64,
        )

    def time(self, series: int, step: int) -> str:
        """The time of a step of a series as text, also of one after its end."""
        return self.axis.written(self.starts[series] + step)


@dataclasses.dataclass(frozen=True, eq=False)
class SeriesPart:
    r"""A part of each of several series: what is forecast there, from what comes before.

    Attributes:
        table: The series.
        begins: First step of the part in each series, int64.
        ends: Step after its last one.
        season: Number of steps of a season, 1 for none.
        name: Where it comes from, for messages.
        skipped: Number of malformed rows that were left out.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("steps.csv").write_text("y\n" + "\n".join("135798642") + "\n")
        >>> part = SeriesPart.whole(read_series("steps.csv"))
        >>> series, begins = part.origins(horizon=2, before=5)
        >>> begins.tolist()
        [5, 6, 7]
    """

    table: SeriesTable
    begins: np.ndarray
    ends: np.ndarray
    season: int = 1
    name: str = "series"
    skipped: int = 0

    @classmethod
    def whole(cls, table: SeriesTable, season: int = 1) -> "SeriesPart":
        """All of each series, until the last value of its targets."""
        ends = table.ends()
        return cls(table, np.zeros_like(ends), ends, season, table.name, table.skipped)

    def __len__(self) -> int:
        """Number of steps of the part."""
        return int((self.ends - self.begins).sum())

    def origins(self, horizon: int, before: int) -> tuple[np.ndarray, np.ndarray]:
        """Lists the windows of a part: where a forecast begins whose horizon lies in it.

        Args:
            horizon: Number of steps that are forecast.
            before: Fewest steps before a forecast.

        Returns:
            The series of each window and the first step of its horizon, both int64 (windows,).
        """
        firsts = np.maximum(self.begins, before)
        counts = np.maximum(self.ends - horizon + 1 - firsts, 0)
        series = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return series, firsts[series] + within


def cut_before(part: SeriesPart, steps: np.ndarray) -> tuple[SeriesPart, SeriesPart]:
    """Divides a part in two, the later one of some steps.

    Args:
        part: The part.
        steps: Number of steps of the later part in each series; a series with fewer steps is left
            out of it.

    Returns:
        The earlier and the later part.
    """
    fits = part.ends - part.begins > steps
    border = np.where(fits, part.ends - steps, part.ends)
    return dataclasses.replace(part, ends=border), dataclasses.replace(part, begins=border)

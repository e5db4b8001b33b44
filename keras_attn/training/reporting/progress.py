"""Progress of a training: a bar on a terminal, occasional lines in a log."""

import math
import time
from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

QUIET = Console(quiet=True)
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_OF_FORECAST = 5.0  # of updates, from which the time of all is known


def say(line: str, console: Console | None = None) -> None:
    """Prints a line without markup, to a console or to standard output."""
    console = console or Console(highlight=False)
    console.print(line, soft_wrap=True, markup=False)
    console.file.flush()


class ProgressReport:
    """Shows the progress of a training, its speed and the time left.

    Args:
        total_steps: Updates of the whole run, as far as it is known.
        step: Updates already made.
        console: Where to write; None for standard output.
        minutes: Time after which the run ends in any case, from now on, or None.
    """

    def __init__(
        self,
        total_steps: int,
        step: int = 0,
        console: Console | None = None,
        minutes: float | None = None,
    ) -> None:
        self._console = console or Console(highlight=False)
        self._total = total_steps
        self._steps_before = step
        self._first_step: int | None = None
        self._read: Counter[str] = Counter()
        self._busy = 0.0  # seconds in updates, without validation
        self._minutes = minutes
        self._end = math.inf if minutes is None else time.monotonic() + 60 * minutes
        self._last_line = self._mark = time.monotonic()
        self._is_announced = False
        self._long_part: str | None = None  # of a validation
        self._bar = None
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} steps"),
                TextColumn("{task.fields[speed]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("", total=total_steps, completed=step, speed="")
            self._bar.start()

    def update(self, step: int, epoch: int, loss: float, read: Mapping[str, float]) -> None:
        """Updates the report.

        Args:
            step: Updates made.
            epoch: Epoch in progress, from 1.
            loss: Loss per token since the beginning of the epoch.
            read: What was read since the last call, by unit, such as `{"tokens": 4096}`.
        """
        now = time.monotonic()
        if self._first_step is None:
            # The first updates include the making of the graphs, so they have no typical speed.
            self._first_step = step if step > self._steps_before else None
        else:
            self._busy += now - self._mark
            self._read.update(read)
        self._mark = now
        description = f"epoch {epoch} loss {loss:.4f}"
        speed = ""
        if self._first_step is not None and step > self._first_step:
            speeds = [f"{count / self._busy:,.0f} {unit}/s" for unit, count in self._read.items()]
            speed = ", ".join([*speeds, f"{self._time_left(step)} left"])
        if not self._is_announced and self._busy >= _SECONDS_OF_FORECAST:
            self._is_announced = True
            speed_of_updates = (step - self._first_step) / self._busy
            if self._end - now < self._seconds_left(step):
                self.say(
                    f"The run ends after {self._minutes:g} min, and makes about "
                    f"{speed_of_updates:.3g} updates a second until then."
                )
            elif step < self._total:
                updates, time_left = self._total - step, _rounded(self._seconds_left(step))
                self.say(
                    f"{updates:,} more update{'s' * (updates != 1)}: about {time_left} at "
                    f"{speed_of_updates:.3g} a second, without validations and the test."
                )
        if self._bar is not None:
            self._bar.update(self._task, completed=step, description=description, speed=speed)
        elif now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self.say(f"step {step}/{self._total} {description} {speed}".rstrip())

    def pause(self) -> None:
        """Marks that the time until `resume` is not training."""
        if self._first_step is not None:
            self._busy += time.monotonic() - self._mark
        self._mark = time.monotonic()

    def validating(self, what: str) -> None:
        """Shows how far a validation is; after a long part of it, what the next part is."""
        kind = what.partition(" ")[0]
        is_next = self._long_part not in (None, kind)
        if self._bar is not None:
            self._bar.update(self._task, description=f"validation: {what}")
        elif is_next or time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self.say(f"validation: {what}")
            self._long_part = kind

    def resume(self) -> None:
        """Marks that training continues."""
        self._long_part = None
        self._mark = time.monotonic()

    def say(self, line: str) -> None:
        """Prints a line, above the bar if there is one."""
        self._last_line = time.monotonic()
        say(line, self._console)

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _seconds_left(self, step: int) -> float:
        """Seconds that all updates to come take."""
        return self._busy / (step - self._first_step) * max(self._total - step, 0)

    def _time_left(self, step: int) -> str:
        seconds = int(min(self._seconds_left(step), max(self._end - time.monotonic(), 0)))
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _rounded(seconds: float) -> str:
    """A time that is not read as one of the day."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"

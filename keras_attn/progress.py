"""Progress of long work besides training, on standard error."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

SECONDS_BETWEEN_LINES = 30.0


@contextlib.contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Shows progress on standard error: a bar on a terminal, otherwise a line every 30 seconds.

    Args:
        total: Total number of items.
        what: Name of the job, such as "decoding".

    Yields:
        A function to call with the number of items just finished.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield progress_lines(total, what)
        return
    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def progress_lines(total: int, what: str) -> Callable[[int], None]:
    """Returns a function that counts items and prints a line every 30 seconds, as `progress`."""
    count, last = 0, time.monotonic()

    def advance(done: int) -> None:
        nonlocal count, last
        count += done
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            sys.stderr.write(f"{what}: {count:,} of {total:,}\n")
            sys.stderr.flush()

    return advance

"""Output of commands besides their results: errors, progress, and quiet imports."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

SECONDS_BETWEEN_LINES = 30.0


def print_error(error: Exception | str) -> None:
    """Prints an error to standard error, in one line."""
    line = " ".join(str(error).split())
    with contextlib.suppress(OSError):
        print(f"keras-attn: error: {line}", file=sys.stderr)


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Hides the messages that TensorFlow writes while it is imported.

    They are shown if the import fails or `TF_CPP_MIN_LOG_LEVEL` asks for them.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3") != "3":
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(terminal, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)


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
        yield _lines(total, what)
        return
    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _lines(total: int, what: str) -> Callable[[int], None]:
    count, last = 0, time.monotonic()

    def advance(done: int) -> None:
        nonlocal count, last
        count += done
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            print(f"{what}: {count:,} of {total:,}", file=sys.stderr, flush=True)

    return advance

"""What commands say besides their results: errors in one line, progress, silence at the start."""

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
    """Holds back what TensorFlow writes while it is imported, before it can be told to be quiet.

    Where the import fails, or the environment asks for TensorFlow's log, all of it is shown.
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
    """Shows on standard error how far a job is: a bar on a terminal, a line now and then in a log.

    Args:
        total: Number of things to do.
        what: What is being done, such as "decoding".

    Yields:
        A function to be called with the number of things just done.
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

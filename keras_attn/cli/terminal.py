"""Output of commands besides their results: errors, and quiet imports."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


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

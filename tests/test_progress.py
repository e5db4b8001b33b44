"""What long work says until it ends."""

import io
import sys
from types import SimpleNamespace

from keras_attn import progress


def test_progress_in_a_log_is_a_line_now_and_then(monkeypatch):
    seconds = iter([0.0, 10.0, 31.0, 40.0, 62.0])
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    # A clock of this module alone: event loops in other threads read the process's.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with progress.progress(5_000, "training") as advance:
        for _ in range(4):
            advance(1_000)
    assert log.getvalue() == "training: 2,000 of 5,000\ntraining: 4,000 of 5,000\n"

"""Timing of calls."""

import statistics
import time
from collections.abc import Callable


def median_seconds(call: Callable[[], object], runs: int) -> float:
    """Measures the time of a call, after a warm-up call for tracing and compilation.

    Args:
        call: The call; it returns when everything has been computed.
        runs: Number of timed calls.

    Returns:
        The median in seconds.
    """
    return statistics.median(seconds_of_runs(call, runs + 1)[1:])


def seconds_of_runs(call: Callable[[], object], runs: int) -> list[float]:
    """Measures the time of each of several calls."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds

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
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])

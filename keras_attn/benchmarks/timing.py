"""Seconds of a call."""

import statistics
import time
from collections.abc import Callable


def median_seconds(call: Callable[[], object], runs: int) -> float:
    """Times a call several times, after one that is not timed, which traces and compiles.

    Args:
        call: What is timed; it returns when everything has been computed.
        runs: How often.

    Returns:
        The median of the seconds.
    """
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])

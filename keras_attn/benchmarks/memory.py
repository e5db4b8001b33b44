"""Peak memory."""

import resource
import sys


def peak_memory() -> int:
    """The most bytes that the accelerator, or else this process, has held so far."""
    if "jax" in sys.modules:
        statistics = sys.modules["jax"].local_devices()[0].memory_stats()
        if statistics and "peak_bytes_in_use" in statistics:
            return statistics["peak_bytes_in_use"]
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

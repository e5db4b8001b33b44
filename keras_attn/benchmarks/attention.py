"""Time and memory of attention mechanisms by length, each measured in a new process.

Implements `keras-attn benchmark attention`, on the backend of KERAS_BACKEND, which `--backend`
sets; on JAX without TensorFlow.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_attn.benchmarks.layer_call import measure_in_a_process
from keras_attn.benchmarks.mechanisms import MECHANISMS, WIDTH
from keras_attn.validation import require, require_one_of, require_positive

# Float32 copies of a mechanism's largest tensor, forward and backward, during a step.
COPIES = 4


def measure_attention(
    lengths: Sequence[int],
    mechanisms: Sequence[str] | None = None,
    causal: bool = False,
    backward: bool = True,
    jit: bool = False,
    precision: str = "float32",
    repeats: int = 3,
    rounds: int = 1,
) -> Iterator[dict[str, Any]]:
    """Measures a layer of self-attention over one sequence, in a new process each time.

    Mechanisms are measured in turn, so that other load on the machine affects all of them.

    Args:
        lengths: Numbers of positions.
        mechanisms: Names from `MECHANISMS`; by default all that support these settings.
        causal: Whether attention is causal.
        backward: Whether to also compute the gradients of input and weights.
        jit: Whether XLA compiles, as it always does on JAX.
        precision: Keras dtype policy of the layer.
        repeats: Timed calls in a process, after a warm-up call.
        rounds: Processes for each mechanism.

    Yields:
        A dict with the settings, `operations` (forward, in theory) and the results of
        `layer_call.measure`, or `error` if the process failed or would need more memory than is
        free.

    Raises:
        UserError: An unknown mechanism, one that does not support causal masking, or a number
            that is not positive.
    """
    if mechanisms is None:
        mechanisms = [name for name in MECHANISMS if MECHANISMS[name].causal or not causal]
    for name in mechanisms:
        require_one_of("mechanism", name, MECHANISMS)
        require(
            MECHANISMS[name].causal or not causal,
            f"The mechanism {name} does not support causal masking.",
            mechanism=name,
            causal=causal,
        )
    for length in lengths:
        require_positive(length=length)
    require_positive(repeats=repeats, rounds=rounds)
    for length in lengths:
        for _ in range(rounds):
            for name in mechanisms:
                settings = {
                    "workload": "mechanisms",
                    "mechanism": name,
                    "length": length,
                    "width": WIDTH,
                    "causal": causal,
                    "backward": backward,
                    "jit": jit,
                    "precision": precision,
                    "repeats": repeats,
                }
                settings["operations"] = MECHANISMS[name].operations(length)
                yield settings | (_lack_of_memory(name, length) or measure_in_a_process(settings))


def _lack_of_memory(name: str, length: int) -> dict[str, str] | None:
    needed = COPIES * 4 * MECHANISMS[name].held(length)
    free = _free_memory()
    if needed <= free:
        return None
    return {"error": f"needs about {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free"}


def _free_memory() -> float:
    """Bytes that Linux can give, what it keeps of files among them; infinite elsewhere."""
    with contextlib.suppress(OSError, KeyError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        kibibytes = dict(line.split(":") for line in lines)["MemAvailable"].split()[0]
        return 1024 * int(kibibytes)
    return math.inf

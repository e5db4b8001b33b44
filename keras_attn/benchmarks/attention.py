"""Time and memory of the attention mechanisms by length, each figure from a fresh process.

Behind `keras-attn benchmark attention`. Runs on the backend that KERAS_BACKEND names, as
`--backend` sets it; on JAX without TensorFlow.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from keras_attn.benchmarks.layer_call import measure_in_a_process
from keras_attn.benchmarks.mechanisms import MECHANISMS, WIDTH
from keras_attn.validation import require, require_one_of, require_positive

# Float32 copies of what a mechanism holds, forward and backward, in the middle of a step.
COPIES = 5


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
    """Measures a layer of self-attention over one sequence, one fresh process a figure.

    Mechanisms are measured in turn, so that what else the machine does falls on all alike.

    Args:
        lengths: Numbers of positions.
        mechanisms: Names from `MECHANISMS`; all that can be measured so by default.
        causal: Whether attention is causal.
        backward: Whether to compute the gradients of input and weights too.
        jit: Whether XLA compiles, as it always does on JAX.
        precision: Keras dtype policy of the layer.
        repeats: Calls that are timed in a process, after one that is not.
        rounds: Processes for each mechanism.

    Yields:
        A dict with the settings, `operations` (forward, by theory) and what `layer_call.measure`
        returns; with `error` in its place where the process failed or would need more memory than
        is free.

    Raises:
        UserError: An unknown mechanism, one that cannot be causal, or a number that is not
            positive.
    """
    if mechanisms is None:
        mechanisms = [name for name in MECHANISMS if MECHANISMS[name].causal or not causal]
    for name in mechanisms:
        require_one_of("mechanism", name, MECHANISMS)
        require(
            MECHANISMS[name].causal or not causal,
            f"The mechanism {name} cannot be causal.",
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
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed <= free:
        return None
    return {"error": f"needs about {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free"}

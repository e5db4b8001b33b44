"""Time and memory of dense and chunked attention, each in a fresh process.

Behind `keras-attn benchmark attention`; as a module it has more options:
`python -m keras_attn.benchmarks.attention --lengths 2048 8192 --causal`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

IMPLEMENTATIONS = ("dense", "chunked")
# Float32 score matrices that dense attention holds at once, forward and backward.
DENSE_MATRICES = 5


def run(
    lengths: Sequence[int],
    heads: int = 8,
    key_dim: int = 64,
    batch_size: int = 1,
    implementations: Sequence[str] = IMPLEMENTATIONS,
    causal: bool = False,
    backward: bool = True,
    jit: bool = False,
    repeats: int = 3,
    rounds: int = 1,
) -> Iterator[dict[str, Any]]:
    """Measures self-attention in float32 on TensorFlow, one fresh process a figure.

    Implementations are measured in turn, so that what else the machine does falls on all alike.

    Args:
        lengths: Numbers of queries and keys.
        heads: Number of heads.
        key_dim: Width of queries, keys and values.
        batch_size: Number of sequences.
        implementations: Which of "dense" and "chunked" to measure.
        causal: Whether attention is causal.
        backward: Whether to compute gradients of query, key and value too.
        jit: Whether to compile with XLA; otherwise TensorFlow's graph mode.
        repeats: Calls that are timed in a process, after one that is not.
        rounds: Processes for each implementation.

    Yields:
        A dict with the settings, `seconds` (of the fastest call), `cpu_seconds` (processor time
        of all threads, of the call that took least) and `peak_bytes` (how far the process grew
        above its size with the inputs made); with `error` in their place where the process
        failed or dense attention would not fit into memory.
    """
    for length in lengths:
        for _ in range(rounds):
            for implementation in implementations:
                settings = {
                    "workload": "attention",
                    "implementation": implementation,
                    "length": length,
                    "heads": heads,
                    "key_dim": key_dim,
                    "batch_size": batch_size,
                    "causal": causal,
                    "backward": backward,
                    "jit": jit,
                    "repeats": repeats,
                }
                needed = DENSE_MATRICES * 4 * batch_size * heads * length**2
                free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
                if implementation == "dense" and needed > free:
                    error = f"needs about {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free"
                    yield {**settings, "error": error}
                else:
                    yield {**settings, **_measure_in_process(settings)}


def _measure_in_process(settings: dict[str, Any]) -> dict[str, Any]:
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.run(
        [sys.executable, "-m", __spec__.name, "--measure", json.dumps(settings)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if process.returncode:
        last_line = (process.stderr.strip().splitlines() or [""])[-1]
        return {"error": f"exit status {process.returncode}: {last_line}"}
    return json.loads(process.stdout.splitlines()[-1])


def _measure(settings: dict[str, Any]) -> dict[str, Any]:
    import numpy as np
    import tensorflow as tf

    from keras_attn.ops import dot_product_attention

    shape = (settings["batch_size"], settings["heads"], settings["length"], settings["key_dim"])
    rng = np.random.default_rng(1)
    inputs = [tf.constant(rng.standard_normal(shape, dtype="float32")) for _ in range(4)]

    @tf.function(jit_compile=settings["jit"], autograph=False)
    def attend(query, key, value, upstream):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            context = dot_product_attention(
                query,
                key,
                value,
                is_causal=settings["causal"],
                implementation=settings["implementation"],
            )
        if not settings["backward"]:
            return context
        return context, tape.gradient(context, [query, key, value], upstream)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, cpu_seconds = [], []
    for _ in range(settings["repeats"] + 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        tf.nest.map_structure(lambda tensor: tensor.numpy(), attend(*inputs))
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": min(seconds[1:]),
        "cpu_seconds": min(cpu_seconds[1:]),
        "peak_bytes": growth * unit,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one JSON line a figure.

    Args:
        arguments: The command line's arguments; those of the process where None.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 8192])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--key-dim", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument(
        "--implementations", nargs="+", choices=IMPLEMENTATIONS, default=list(IMPLEMENTATIONS)
    )
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--forward-only", action="store_true")
    parser.add_argument("--jit", action="store_true", help="compile with XLA")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = vars(parser.parse_args(arguments))
    settings = options.pop("measure")
    if settings:
        print(json.dumps(_measure(json.loads(settings))))
        return
    options["backward"] = not options.pop("forward_only")
    for figure in run(**options):
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()

"""Time and memory of a layer, measured in a separate process.

Each workload is a module of this package with `make_layer(settings)` and
`call_layer(layer, x, settings)`.
"""

import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from keras_attn.documents import parse_json
from keras_attn.processes import python_command, python_environment


def measure_in_a_process(settings: dict[str, Any]) -> dict[str, Any]:
    """Measures a layer in a new process, on the backend of KERAS_BACKEND.

    Args:
        settings: `workload` (its module), `length`, `width`, `backward`, `jit`, `precision`,
            `repeats`, and settings of the workload.

    Returns:
        The results of `measure`, or the last line of an error as `error`.
    """
    process = subprocess.run(
        python_command(__name__, json.dumps(settings)),
        capture_output=True,
        text=True,
        env=python_environment(TF_CPP_MIN_LOG_LEVEL="3"),
        check=False,
    )
    if process.returncode:
        last_line = (process.stderr.strip().splitlines() or [""])[-1]
        return {"error": f"exit status {process.returncode}: {last_line}"}
    return parse_json(process.stdout.splitlines()[-1], "the measuring process")


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Measures time and memory of a layer over one sequence.

    Args:
        settings: As for `measure_in_a_process`.

    Returns:
        `backend`, `seconds` (of the fastest call), `cpu_seconds` (smallest processor time of a
        call, over all threads) and `peak_bytes` (growth of the process, or of an accelerator's
        memory, without layer and inputs).
    """
    import keras
    import numpy as np

    keras.config.set_dtype_policy(settings["precision"])
    workload = importlib.import_module(f"keras_attn.benchmarks.{settings['workload']}")
    layer = workload.make_layer(settings)
    rng = np.random.default_rng(1)
    shape = (1, settings["length"], settings["width"])
    x, upstream = (rng.standard_normal(shape, dtype="float32") for _ in range(2))
    function = partial(_called, workload, layer, settings)
    call = prepared_call(layer, function, x, upstream, settings)
    before = peak_memory()
    seconds, cpu_seconds = [], []
    for _ in range(settings["repeats"] + 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    return {
        "backend": keras.backend.backend(),
        "seconds": min(seconds[1:]),
        "cpu_seconds": min(cpu_seconds[1:]),
        "peak_bytes": peak_memory() - before,
    }


def _called(workload: Any, layer: Any, settings: dict[str, Any], x: Any) -> Any:
    return workload.call_layer(layer, x, settings)


def prepared_call(
    layer: Any, function: Callable, x: Any, upstream: Any, settings: dict[str, Any]
) -> Callable[[], Any]:
    """Compiles a call of a layer, with its gradients where they are asked for.

    Args:
        layer: The layer, built.
        function: Calls it with a tensor.
        x: Array of inputs.
        upstream: Array of the shape of the outputs, by which they are multiplied for the gradients.
        settings: `backward` and `jit`.

    Returns:
        A function that computes all and waits for it.
    """
    import keras

    of_backends = {"tensorflow": _on_tensorflow, "jax": _on_jax, "torch": _on_torch}
    prepare = of_backends[keras.backend.backend()]
    return prepare(layer, function, x, upstream, settings)


def peak_memory() -> int:
    """Returns the peak memory of the accelerator, or else of this process, in bytes."""
    if "jax" in sys.modules:
        statistics = sys.modules["jax"].local_devices()[0].memory_stats()
        if statistics and "peak_bytes_in_use" in statistics:
            return statistics["peak_bytes_in_use"]
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _on_tensorflow(layer, function, x, upstream, settings) -> Callable:
    tf = importlib.import_module("tensorflow")
    x, upstream = (tf.cast(array, layer.compute_dtype) for array in (x, upstream))
    tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec(x.shape, x.dtype))

    def compute(x, upstream):
        if not settings["backward"]:
            return function(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = function(x)
        # The compression has no gradient here: it is zero instead of None.
        return tape.gradient(
            output,
            [x, *(variable.value for variable in layer.trainable_variables)],
            upstream,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )

    compiled = tf.function(compute, jit_compile=settings["jit"], autograph=False)
    run = compiled.get_concrete_function(x, upstream)
    return lambda: tf.nest.map_structure(lambda y: y.numpy(), run(x, upstream))


def _on_jax(layer, function, x, upstream, settings) -> Callable:
    jax, keras = importlib.import_module("jax"), importlib.import_module("keras")
    x, upstream = (jax.numpy.asarray(array, layer.compute_dtype) for array in (x, upstream))
    jax.eval_shape(function, x)
    variables = (*layer.trainable_variables, *layer.non_trainable_variables)
    states = [variable.value for variable in layer.non_trainable_variables]
    weights = [variable.value for variable in layer.trainable_variables]

    def output(x, weights):
        mapping = list(zip(variables, (*weights, *states), strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(x)

    def scalar(x, weights, upstream):
        return jax.numpy.sum((output(x, weights) * upstream).astype("float32"))

    if settings["backward"]:
        run = jax.jit(jax.grad(scalar, argnums=(0, 1)))
        return lambda: jax.block_until_ready(run(x, weights, upstream))
    run = jax.jit(output)
    return lambda: jax.block_until_ready(run(x, weights))


def _on_torch(layer, function, x, upstream, settings) -> Callable:
    torch = importlib.import_module("torch")
    dtype = getattr(torch, layer.compute_dtype)
    x, upstream = (torch.from_numpy(array).to(dtype) for array in (x, upstream))
    weights = [variable.value for variable in layer.trainable_variables]
    x.requires_grad_(settings["backward"])
    run = torch.compile(function) if settings["jit"] else function
    if not settings["backward"]:

        def call():
            with torch.no_grad():
                return run(x)

        return call
    return lambda: torch.autograd.grad(run(x), [x, *weights], upstream, allow_unused=True)


if __name__ == "__main__":
    print(json.dumps(measure(parse_json(sys.argv[1], "settings"))))

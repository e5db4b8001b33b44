"""Speed of Keras' `model.fit` for a Transformer on random ids, relative to the machine's peak.

Implements `keras-attn benchmark fit`, on the backend of KERAS_BACKEND, which `--backend` sets; on
JAX without TensorFlow.
"""

from typing import Any

import keras
import numpy as np

from keras_attn.benchmarks.layer_call import peak_memory
from keras_attn.benchmarks.matrix_products import matrix_operations, matrix_peak
from keras_attn.benchmarks.timing import median_seconds
from keras_attn.models import Transformer
from keras_attn.ops.devices import has_accelerator
from keras_attn.training.loop.losses import TokenCrossEntropy
from keras_attn.training.settings import PRECISIONS
from keras_attn.validation import require_one_of, require_positive

VOCABULARY = 37_000  # of source and target together, as in the paper's English to German
LABEL_SMOOTHING = 0.1
# Rows and columns of products that use a device fully.
CPU_SIZE = 2048
ACCELERATOR_SIZE = 8192


def benchmark_fit(
    preset: str = "transformer_base",
    batch: int = 64,
    length: int = 128,
    precision: str = "float32",
    jit: bool = False,
    steps: int = 10,
) -> dict[str, Any]:
    """Measures the time of `model.fit` with Adam, label smoothing and the preset's dropout.

    Args:
        preset: Name of an encoder-decoder Transformer's preset.
        batch: Sequences of a batch.
        length: Length of the sources and of the targets; none is padded.
        precision: Keras dtype policy.
        jit: Whether XLA compiles the step, as it always does on JAX.
        steps: Steps of the timed epoch, after a warm-up epoch.

    Returns:
        The settings; `seconds` per step, target `tokens_per_second`, `tflops` (operations of matrix
        products per second, in 10¹², over the whole step), `peak_tflops` (those of large products
        in the layers' dtype), `of_peak`, their ratio, and `peak_bytes`, the growth of the
        accelerator's memory or of the process.

    Raises:
        UserError: An unknown preset or precision, or a number that is not positive.
    """
    require_positive(batch=batch, length=length, steps=steps)
    require_one_of("precision", precision, PRECISIONS)
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(precision)
    before = peak_memory()
    model = Transformer.from_preset(preset, VOCABULARY)
    on_jax = keras.backend.backend() == "jax"
    model.compile(
        keras.optimizers.Adam(1e-4, beta_2=0.98, epsilon=1e-9),
        TokenCrossEntropy(LABEL_SMOOTHING),
        jit_compile=jit or on_jax,
    )
    examples = _random_ids(batch * steps, length)
    options = {"batch_size": batch, "epochs": 1, "verbose": 0}
    seconds = median_seconds(lambda: model.fit(*examples, **options), runs=1) / steps
    reached = matrix_operations(model, batch, length, length) / seconds
    peak = matrix_peak(model.compute_dtype, ACCELERATOR_SIZE if has_accelerator() else CPU_SIZE)
    return {
        "preset": preset,
        "backend": keras.backend.backend(),
        "device": "accelerator" if has_accelerator() else "cpu",
        "precision": precision,
        "batch": batch,
        "length": length,
        "jit": jit or on_jax,
        "seconds": round(seconds, 4),
        "tokens_per_second": round(batch * length / seconds),
        "tflops": round(reached / 1e12, 3),
        "peak_tflops": round(peak / 1e12, 3),
        "of_peak": round(reached / peak, 3),
        "peak_bytes": peak_memory() - before,
    }


def _random_ids(rows: int, length: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    ids = np.random.default_rng(0).integers(1, VOCABULARY, (2, rows, length + 1), "int32")
    source, target = ids[0, :, 1:], ids[1]
    return {"source_ids": source, "target_ids": target[:, :-1]}, target[:, 1:]

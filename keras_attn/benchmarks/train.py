"""Target tokens a second of whole training steps, on random ids."""

import statistics
import time
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from keras_attn.benchmarks.workloads import TRAIN_WORKLOADS
from keras_attn.models import Transformer
from keras_attn.training.optimizer import make_optimizer
from keras_attn.training.settings import PRECISIONS, TrainingSettings
from keras_attn.training.step import TrainingStep
from keras_attn.validation import require_one_of, require_positive


def benchmark_training(
    workloads: list[str],
    precision: str = "float32",
    jit: bool = False,
    steps: int = 9,
    shared_embeddings: bool = False,
) -> Iterator[dict]:
    """Times the trainer's own step: forward, loss, backward, clipping and Adam, with dropout.

    Args:
        workloads: Names of workloads.
        precision: Keras dtype policy.
        jit: Whether XLA compiles the step.
        steps: Steps timed after two that are not; the median counts.
        shared_embeddings: Whether source and target share one embedding. The output projection is
            tied with the target embedding either way.

    Yields:
        For each workload its figures: seconds a step, target tokens a second, the loss of the
        first and the last step, and by how much the parameters changed (Euclidean norm).

    Raises:
        UserError: An unknown workload or precision.
    """
    require_positive(steps=steps)
    require_one_of("precision", precision, PRECISIONS)
    for name in workloads:
        require_one_of("workload", name, TRAIN_WORKLOADS)
    keras.config.set_dtype_policy(precision)
    for name in workloads:
        yield {
            "peer": "keras_attn",
            "workload": name,
            "precision": precision,
            "jit": jit,
            "tied": True,
            "shared_embeddings": shared_embeddings,
        } | _measure(TRAIN_WORKLOADS[name], precision, jit, steps, shared_embeddings)


def _measure(workload, precision, jit, steps, shared_embeddings) -> dict:
    keras.utils.set_random_seed(0)
    model = Transformer(
        workload["vocabulary"],
        None if shared_embeddings else workload["vocabulary"],
        num_layers=workload["layers"],
        hidden_dim=workload["hidden_dim"],
        num_heads=workload["num_heads"],
        intermediate_dim=workload["intermediate_dim"],
        dropout=workload["dropout"],
        attention_dropout=workload["dropout"],
        activation_dropout=workload["dropout"],
    )
    settings = TrainingSettings(precision=precision, clip_norm=0.0)
    loss_scaling = precision == "mixed_float16"
    optimizer = make_optimizer(settings, 1e-3, model.trainable_variables, loss_scaling)
    run = TrainingStep(model, optimizer, tf.distribute.get_strategy(), jit=jit)
    batch = _random_batch(workload)
    before = [variable.numpy() for variable in model.trainable_variables]
    losses, seconds = [], []
    for _ in range(steps + 2):
        start = time.perf_counter()
        loss, _, tokens, _ = run([batch]).numpy()
        seconds.append(time.perf_counter() - start)
        losses.append(loss / tokens)
    after = [variable.numpy() for variable in model.trainable_variables]
    change = sum(float(np.sum((a - b) ** 2)) for a, b in zip(after, before, strict=True)) ** 0.5
    median = statistics.median(seconds[2:])
    return {
        "seconds": round(median, 4),
        "tokens_per_second": round(workload["batch"] * workload["target"] / median),
        "first_loss": round(float(losses[0]), 4),
        "last_loss": round(float(losses[-1]), 4),
        "parameter_change": round(change, 4),
    }


def _random_batch(workload):
    rng = np.random.default_rng(0)
    rows, vocabulary = workload["batch"], workload["vocabulary"]
    source = rng.integers(1, vocabulary, (rows, workload["source"]))
    target = rng.integers(1, vocabulary, (rows, workload["target"] + 1))
    source, inputs, labels = (
        tf.constant(ids, tf.int32) for ids in (source, target[:, :-1], target[:, 1:])
    )
    return {"source_ids": source, "target_ids": inputs}, labels

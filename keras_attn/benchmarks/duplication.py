"""The duplication task of the Reformer's paper, by rounds of hashing.

Implements `keras-attn benchmark duplication`, on the backend of KERAS_BACKEND, which `--backend`
sets; on JAX without TensorFlow.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.benchmarks.growth import markdown
from keras_attn.layers import LSHAttention
from keras_attn.models import CausalTransformer
from keras_attn.training.loop.losses import TokenCrossEntropy
from keras_attn.validation import require, require_one_of, require_positive

# One layer, as in the paper's section 5.
SYMBOLS, WIDTH, HEADS = 127, 256, 4
SEPARATOR, FIRST_SYMBOL = 1, 2
FULL = "full"
TRAINED = (FULL, "lsh-1", "lsh-2", "lsh-4")
JUDGED = (FULL, "lsh-8", "lsh-4", "lsh-2", "lsh-1")
BATCH, STEPS_AT_ONCE, TEST_BATCHES = 32, 100, 16


def measure_duplication(
    trained: Sequence[str] = (FULL, "lsh-4"),
    length: int = 256,
    steps: int = 2_000,
    learning_rate: float = 3e-3,
    seed: int = 0,
    watch: Callable[[str, int, float], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Trains a model for each kind of attention and evaluates it with all of them.

    A sequence consists of a separator and random symbols, twice. The model predicts the second
    half, where a random guess is right once in 127 times. Each update and each evaluation batch
    has new sequences and new rotations, so that nothing can be memorized.

    Args:
        trained: Kinds of attention to train with, from `TRAINED`: "full" is shared queries and
            keys with all positions in one bucket, "lsh-4" four rounds of hashing.
        length: Number of tokens of a sequence, even.
        steps: Updates of 32 sequences each, a multiple of 100.
        learning_rate: The learning rate of Adam, which falls to 0 along a cosine.
        seed: Seed of weights, sequences and rotations.
        watch: Called after each hundred steps with the kind of attention, the number of steps done
            and the loss of the last hundred.

    Yields:
        A dict with `trained`, `length`, `steps`, `seconds`, `loss` (of the last hundred steps) and
        `accuracy`: the fraction of right symbols by kind of attention at evaluation.

    Raises:
        UserError: An unknown kind, an odd length, or numbers that are not positive.

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 5, Table 2.
    """
    for kind in trained:
        require_one_of("trained", kind, TRAINED)
    require_positive(length=length, steps=steps)
    require(learning_rate > 0, "`learning_rate` must be positive.", learning_rate=learning_rate)
    require(length % 2 == 0 and length >= 8, "`length` must be even, and 8 or more.", length=length)
    require(steps % STEPS_AT_ONCE == 0, "`steps` must be a multiple of 100.", steps=steps)
    for kind in trained:
        keras.utils.set_random_seed(seed)
        generator = np.random.default_rng(seed)
        model = _model(kind, length)
        _start(model, generator)
        schedule = keras.optimizers.schedules.CosineDecay(
            0.0, steps, warmup_target=learning_rate, warmup_steps=min(STEPS_AT_ONCE * 5, steps // 2)
        )
        model.compile(keras.optimizers.Adam(schedule, clipnorm=1.0), TokenCrossEntropy())
        start = time.perf_counter()
        for done in range(STEPS_AT_ONCE, steps + 1, STEPS_AT_ONCE):
            model.reset_metrics()
            for _ in range(STEPS_AT_ONCE):
                loss = _update(model, kind, length, generator)
            if watch is not None:
                watch(kind, done, loss)
        yield {
            "trained": kind,
            "length": length,
            "steps": steps,
            "seconds": round(time.perf_counter() - start, 1),
            "loss": round(loss, 4),
            "accuracy": {to: _accuracy(model, to, length, generator) for to in JUDGED},
        }


def duplicated(rows: int, length: int, generator: np.random.Generator) -> tuple:
    """Makes sequences whose second half repeats the first.

    Args:
        rows: Number of sequences.
        length: Number of tokens of each, even.
        generator: Source of the symbols.

    Returns:
        Input ids, int32 (rows, length), and labels: the next ids for symbols of the second half, 0
        elsewhere.
    """
    half = length // 2
    ids = generator.integers(FIRST_SYMBOL, FIRST_SYMBOL + SYMBOLS, (rows, half), "int32")
    ids[:, 0] = SEPARATOR
    labels = np.zeros((rows, length), "int32")
    labels[:, half : length - 1] = ids[:, 1:]
    return np.concatenate([ids, ids], axis=1), labels


def duplication_table(figures: Sequence[dict[str, Any]]) -> str:
    """Makes a table of right symbols in percent by attention in training and evaluation.

    Args:
        figures: The results of `measure_duplication`.
    """
    rows = [["trained with", *(f"evaluated with {kind}" for kind in JUDGED)]]
    for figure in figures:
        shares = (f"{100 * figure['accuracy'][kind]:.1f}" for kind in JUDGED)
        rows.append([figure["trained"], *shares])
    return markdown(rows)


def _model(kind: str, length: int) -> CausalTransformer:
    chunk = max(length // 8, 4)
    layer = LSHAttention(
        HEADS,
        WIDTH // HEADS,
        # A single bucket is made of two, where only the first is used without rotations.
        num_buckets=2 if kind == FULL else 2 * length // chunk,
        num_hashes=1 if kind == FULL else int(kind.removeprefix("lsh-")),
        chunk_length=length if kind == FULL else chunk,
    )
    return CausalTransformer(
        FIRST_SYMBOL + SYMBOLS,
        num_layers=1,
        hidden_dim=WIDTH,
        num_heads=HEADS,
        intermediate_dim=WIDTH,
        dropout=0.0,
        norm_first=True,
        learned_positions=length,
        self_attention=layer,
    )


def _start(model: CausalTransformer, generator: np.random.Generator) -> None:
    """Positions have the same scale as symbols, so that attention can learn them."""
    for variable in model.trainable_variables:
        if variable.path.startswith("positions/"):
            variable.assign(generator.standard_normal(variable.shape))
        elif variable.path.endswith("query_value/kernel"):
            variable.assign(variable / (WIDTH // HEADS) ** 0.5)


def _rotate(model: CausalTransformer, kind: str, generator: np.random.Generator) -> None:
    """New rotations, or none for a single bucket."""
    (rotations,) = (x for x in model.non_trainable_variables if x.path.endswith("rotations"))
    drawn = generator.standard_normal(rotations.shape)
    rotations.assign(0.0 * drawn if kind == FULL else drawn)


def _update(model, kind: str, length: int, generator: np.random.Generator) -> float:
    """Makes an update, and returns the mean loss since the metrics were reset."""
    _rotate(model, kind, generator)
    ids, labels = duplicated(BATCH, length, generator)
    return float(model.train_on_batch({"token_ids": ids}, labels, return_dict=True)["loss"])


def _accuracy(model, kind: str, length: int, generator: np.random.Generator) -> float:
    judged = _model(kind, length)
    for theirs, ours in zip(judged.trainable_variables, model.trainable_variables, strict=True):
        theirs.assign(ours)
    right = count = 0
    for _ in range(TEST_BATCHES):
        _rotate(judged, kind, generator)
        ids, labels = duplicated(BATCH, length, generator)
        found = judged.predict_on_batch({"token_ids": ids}).argmax(axis=-1)
        right += int(((found == labels) & (labels > 0)).sum())
        count += int((labels > 0).sum())
    return right / count

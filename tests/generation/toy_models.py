"""Small models whose next-token probabilities depend on everything generated so far.

Each exists twice: as a `step` in `keras.ops`, and in plain numpy over a prefix for the judges.
"""

import functools

import keras
import numpy as np
from keras import ops

START, END = 1, 2


def compiled(function, **options):
    """The function in a graph of the backend under test."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, autograph=False, **options)
    if keras.backend.backend() == "torch":
        return function  # Keras compiles nothing there
    import jax

    return jax.jit(function)


def log_softmax(logits):
    """Over a numpy vector in float64; all `-inf` where every logit is, or where one is NaN."""
    logits = np.asarray(logits, "float64")
    peak = logits.max()
    if not np.isfinite(peak):
        return np.full_like(logits, -np.inf)
    return logits - peak - np.log(np.exp(logits - peak).sum())


class Judged:
    """A model with `log_probabilities` of a source and a prefix."""

    def following(self, source):
        """The judges' function of a prefix, each prefix worked out once."""
        return functools.cache(lambda prefix: self.log_probabilities(source, prefix))


class HashModel(Judged):
    """Logits from a table, in the row that a running hash of the whole prefix gives.

    The position in the hash comes from a counter in the source state, one per source, which
    every step raises: a strategy that reorders, repeats or forgets it changes the result.
    """

    def __init__(self, vocabulary, modulus=251):
        self.vocabulary = vocabulary
        self.modulus = modulus

    def random_tables(self, rng, count, spread=1.5, end_bonus=0.0):
        tables = rng.normal(size=(count, self.modulus, self.vocabulary)) * spread
        tables[..., END] += end_bonus
        return tables.astype("float32")

    def initial_state(self, tables):
        rows = ops.shape(tables)[0]
        return {
            "source": {"table": tables, "steps": ops.zeros((rows,), "int32"), "unused": None},
            "hypothesis": {"hash": ops.zeros((rows,), "int32"), "unused": None},
        }

    def step(self, token_ids, state, index):
        source, hypothesis = state["source"], state["hypothesis"]
        sources = ops.shape(source["table"])[0]
        assert tuple(source["table"].shape[1:]) == (self.modulus, self.vocabulary)
        hashes = ops.reshape(hypothesis["hash"] * 7 + token_ids + 1, (sources, -1))
        hashes = (hashes + 13 * source["steps"][:, None]) % self.modulus
        rows = hashes + ops.arange(sources)[:, None] * self.modulus
        flat = ops.reshape(source["table"], (-1, self.vocabulary))
        logits = ops.take(flat, ops.reshape(rows, (-1,)), axis=0)
        return logits, {
            "source": {**source, "steps": source["steps"] + 1},
            "hypothesis": {"hash": ops.reshape(hashes, (-1,)), "unused": None},
        }

    def logits(self, table, prefix):
        """Of the token after `prefix`, a tuple of generated tokens."""
        code = 0
        for position, token in enumerate((START, *prefix)):
            code = (code * 7 + token + 1 + 13 * position) % self.modulus
        return table[code]

    def log_probabilities(self, table, prefix):
        return log_softmax(self.logits(table, prefix))


class RecurrentModel(Judged):
    """A tiny random recurrent network with nested states of several ranks and types."""

    def __init__(self, rng, vocabulary, units=7):
        self.vocabulary = vocabulary
        self.embedding = rng.normal(size=(vocabulary, units)).astype("float32")
        self.recurrent = (rng.normal(size=(units, units)) / units**0.5).astype("float32")
        self.output = (2 * rng.normal(size=(2 * units, vocabulary)) / units**0.5).astype("float32")

    def initial_state(self, sources):
        """Of sources, float (batch, units)."""
        memory = ops.zeros((ops.shape(sources)[0], 3, ops.shape(sources)[1]), "float32")
        return {"source": None, "hypothesis": (sources, {"memory": memory, "empty": None})}

    def step(self, token_ids, state, index):
        hidden, rest = state["hypothesis"]
        inputs = ops.take(ops.convert_to_tensor(self.embedding), token_ids, axis=0)
        hidden = ops.tanh(inputs + ops.matmul(hidden, self.recurrent))
        # (rows, 3, units): the last three hidden states, the newest first.
        memory = ops.concatenate([hidden[:, None], rest["memory"][:, :2]], axis=1)
        features = ops.concatenate([hidden, ops.sum(memory, axis=1)], axis=1)
        return ops.matmul(features, self.output), {
            "source": None,
            "hypothesis": (hidden, {"memory": memory, "empty": None}),
        }

    def log_probabilities(self, source, prefix):
        hidden, memory = source.astype("float64"), []
        for token in (START, *prefix):
            hidden = np.tanh(self.embedding[token] + hidden @ self.recurrent)
            memory = [hidden, *memory][:3]
        return log_softmax(np.concatenate([hidden, sum(memory)]) @ self.output)

"""A tiny task and tiny examples to train on."""

import csv
import pathlib
import random

import keras
import numpy as np

from keras_attn.data import PairExamples, TokenRows
from keras_attn.training import Trainer, TrainingSettings, ValidationSet

VOCABULARY = 17
WIDTH = 11


def examples(rows=61, seed=0):
    """Pairs whose target repeats the source, lengths 2 to 12."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 13, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = generator.integers(3, VOCABULARY, offsets[-1]).astype(np.int32)
    ids[offsets[1:] - 1] = 2
    sequences = TokenRows(ids, offsets)
    return PairExamples(source=sequences, target=sequences, indices=np.arange(rows))


def backbone(dropout=0.0):
    """Embeds both sides and guesses each next token: two layers and one mean."""
    random.seed(5)  # Keras draws the seeds of initializers and dropout from it
    source = keras.Input((None,), dtype="int32", name="source_ids")
    target = keras.Input((None,), dtype="int32", name="target_ids")
    embedding = keras.layers.Embedding(VOCABULARY, WIDTH)
    real = keras.ops.cast(keras.ops.expand_dims(source, -1) > 0, embedding.compute_dtype)
    context = keras.ops.sum(embedding(source) * real, axis=1, keepdims=True)
    hidden = keras.layers.Dropout(dropout)(embedding(target) + context)
    logits = keras.layers.Dense(VOCABULARY, dtype=keras.config.dtype_policy().variable_dtype)(
        hidden
    )
    return keras.Model({"source_ids": source, "target_ids": target}, logits)


class StandInTask:
    """What a Trainer needs of a task."""

    def __init__(self, dropout=0.0):
        self.backbone = backbone(dropout)

    def save(self, folder):
        self.backbone.save_weights(pathlib.Path(folder) / "model.weights.h5")

    @classmethod
    def load(cls, folder, dtype=None):
        task = cls()
        task.backbone.load_weights(pathlib.Path(folder) / "model.weights.h5")
        return task


def settings(**changes):
    """A run of two epochs of a few updates."""
    given = {
        "epochs": 2,
        "batch_tokens": 64,
        "schedule": "constant",
        "learning_rate": 0.05,
        "warmup_steps": 3,
        "deterministic": False,
        "log_every": 0,
    }
    return TrainingSettings(**(given | changes))


def train(folder, validation=None, *, callbacks=(), task=None, resume=False, **changes):
    """Trains a stand-in; returns trainer and result."""
    trainer = Trainer(task or StandInTask(), settings(**changes), folder, callbacks)
    return trainer, trainer.fit(examples(), validation, resume=resume)


def validation_set(**values):
    """Held-out examples, with fixed further values if given."""
    return ValidationSet(examples(13, seed=1), (lambda: values) if values else None)


def metrics_rows(folder):
    """metrics.csv as a list of dicts of strings."""
    with (pathlib.Path(folder) / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class Weights(keras.callbacks.Callback):
    """Remembers the model's weights after each epoch."""

    def __init__(self):
        super().__init__()
        self.after = []

    def on_epoch_end(self, epoch, logs=None):
        self.after.append([np.array(weight) for weight in self.model.get_weights()])

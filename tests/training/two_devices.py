"""Run with `python -m`: compares one device with two logical CPUs, prints its findings as JSON."""

import json
import os
import pathlib
import signal
import tempfile

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import plan_epoch
from keras_attn.training import (
    Trainer,
    TrainingInterrupted,
    TrainingStep,
    make_optimizer,
    make_strategy,
)
from keras_attn.training.workers.strategy import distributed_batches, replica_random_streams
from tests.training.stand_in import StandInTask, backbone, examples, settings, validation_set


def weights_after_updates(strategy, accumulate, optimizer):
    """Six updates with clipping, decay and averaging, from batches that do not divide evenly."""
    with strategy.scope():
        model = backbone()
        numbers = settings(epsilon=0.001, weight_decay=0.1, ema_decay=0.9, optimizer=optimizer)
        optimizer = make_optimizer(numbers, 2.0**-7, model.trainable_variables, False)
    step = TrainingStep(
        model,
        optimizer,
        strategy,
        label_smoothing=0.1,
        batch_tokens=64,
        accumulate=accumulate > 1,
        clip_norm=0.01,
    )
    rows = examples(29)
    plan = plan_epoch(rows, 64, seed=3)
    batches = list(distributed_batches(strategy, rows, plan))[: 6 * accumulate]
    sums = [step(batches[k : k + accumulate]).numpy() for k in range(0, len(batches), accumulate)]
    optimizer.finalize_variable_values(model.trainable_variables)
    return model.get_weights(), np.array(sums)


def difference(accumulate, optimizer="adam"):
    one, one_sums = weights_after_updates(make_strategy("one"), accumulate, optimizer)
    two, two_sums = weights_after_updates(make_strategy("mirrored"), accumulate, optimizer)
    start = backbone().get_weights()
    return {
        "weights": max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True)),
        "sums": float(np.abs(one_sums[:, :3] / two_sums[:, :3] - 1).max()),
        "moved": min(float(np.abs(a - b).max()) for a, b in zip(one, start, strict=True)),
        "updates": len(one_sums),
    }


def dropout_masks():
    """Masks of two calls on each replica, on one device, and the states of the generators."""

    def layer():
        return keras.Sequential([keras.Input((41,)), keras.layers.Dropout(0.5, seed=7)])

    strategy = make_strategy("mirrored")
    with strategy.scope():
        model = layer()

    def replica():
        masks = []
        for _ in range(2):
            with replica_random_streams(model):
                masks.append(model(tf.ones((1, 41)), training=True))
        return tf.concat(masks, 0)

    masks = strategy.experimental_local_results(tf.function(strategy.run)(replica))
    alone = layer()
    plain = tf.concat([alone(tf.ones((1, 41)), training=True) for _ in range(2)], 0)
    (state,) = model.variables
    return {
        "replicas_differ": bool(np.any(masks[0] != masks[1])),
        "calls_differ": all(bool(np.any(mask[0] != mask[1])) for mask in masks),
        "first_as_alone": bool(np.all(masks[0] == plain)),
        "states": [value.numpy().tolist() for value in state.value.values],
        "state_alone": alone.variables[0].numpy().tolist(),
    }


class Interrupt(keras.callbacks.Callback):
    """Presses Ctrl-C after the fifth batch of the first epoch."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 4:
            os.kill(os.getpid(), signal.SIGINT)


def reproducible(folder):
    """Whether a run on two replicas, with dropout, interrupted and resumed, is as a whole one."""

    def fit(name, resume=False, callbacks=()):
        with strategy.scope():
            task = StandInTask(dropout=0.3)
        trainer = Trainer(task, settings(log_every=2), folder / name, callbacks)
        trainer.fit(examples(), validation_set(), resume=resume)
        return (folder / name / "metrics.csv").read_text()

    strategy = make_strategy("mirrored")
    whole = fit("whole")
    try:
        fit("parts", callbacks=[Interrupt()])
    except TrainingInterrupted as stop:
        return {"status": stop.code, "equal": fit("parts", resume=True) == whole}


if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    keras.config.set_dtype_policy("float64")
    found = {"single": difference(1), "accumulated": difference(2), "muon": difference(1, "muon")}
    keras.config.set_dtype_policy("float32")
    found["dropout"] = dropout_masks()
    with tempfile.TemporaryDirectory() as folder:
        found["run"] = reproducible(pathlib.Path(folder))
    print(json.dumps(found))

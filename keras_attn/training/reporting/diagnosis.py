"""Explanations of failures: numbers that are not finite, or too little memory."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.tensors import Tensor
from keras_attn.training.settings import TrainingSettings


def first_failure(model: keras.Model, loss: Callable, inputs: Any, labels: Tensor) -> str | None:
    """Runs a batch again, and finds the layer where it fails.

    Dropout is drawn again, so a failure that depends on it may not recur.

    Args:
        model: The model, with its weights at the failure.
        loss: As for `TrainingStep`.
        inputs: The inputs of the batch.
        labels: The labels of the batch.

    Returns:
        One sentence for the user, or `None` if everything is finite.
    """
    for variable in model.variables:
        if count := _not_finite(variable.value):
            return f"The weights {variable.path} have {count:,} values that are not finite."
    seen = []
    with _watched(model, seen), tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        total, *_ = loss(labels, outputs, 0.0)
    if seen:
        path, count = seen[0]
        return (
            f"The first layer that gave values that are not finite, {count:,} of them, is {path}."
        )
    variables = model.trainable_variables
    gradients = tape.gradient(total, [variable.value for variable in variables])
    # The backward pass begins at the output: a failure there spreads to all layers before it.
    for variable, gradient in reversed(list(zip(variables, gradients, strict=True))):
        if gradient is not None and (count := _not_finite(gradient)):
            return (
                "All layers give finite values; the first gradient that is not finite, in "
                f"{count:,} values, is that of {variable.path}."
            )
    return None


def why_exhausted(error: tf.errors.ResourceExhaustedError, settings: TrainingSettings) -> str:
    """A line for users whose batch does not fit into memory, or whose disk is full."""
    reason = error.message.splitlines()[0]
    if "OOM" not in reason:
        return reason
    smaller, more = max(settings.batch_tokens // 2, 1), settings.accumulate_steps * 2
    return (
        f"A batch does not fit into memory. The same updates in less of it: batch_tokens={smaller} "
        f"with accumulate_steps={more}; the model's recompute=true, and precision=mixed_bfloat16, "
        f"need less too. Received: batch_tokens={settings.batch_tokens}, "
        f"accumulate_steps={settings.accumulate_steps}, {reason}."
    )


@contextlib.contextmanager
def _watched(model: keras.Model, seen: list[tuple[str, int]]) -> Iterator[None]:
    """Records the path of every layer whose output is not finite, in the order of the calls."""
    layers = list(model._flatten_layers(include_self=False))

    def watching(layer: keras.Layer) -> Callable:
        call = layer.call

        def watched(*arguments: Any, **options: Any) -> Any:
            outputs = call(*arguments, **options)
            count = sum(map(_not_finite, tf.nest.flatten(outputs)))
            if count:
                seen.append((layer.path, count))
            return outputs

        return watched

    for layer in layers:
        layer.call = watching(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.call


def _not_finite(value: Any) -> int:
    """Counts the numbers of a tensor that are NaN or infinite; 0 unless they are floating."""
    if not tf.is_tensor(value) or not value.dtype.is_floating:
        return 0
    return int(np.sum(~np.isfinite(tf.cast(tf.convert_to_tensor(value), tf.float64).numpy())))

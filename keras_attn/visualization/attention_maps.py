"""Attention maps of all attention layers in a call of a model."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.layers.attention.capture import CapturedAttention, capture_attention
from keras_attn.layers.attention.intra_attention_cell import IntraAttentionCell
from keras_attn.validation import require
from keras_attn.visualization.attention_map import AttentionMap


def attention_maps(model: keras.Model, inputs: Any) -> list[AttentionMap]:
    """Calls a model and returns the attention weights of each of its attention layers.

    The model may be any model with layers of this package, also a subclassed one. It is called
    once, eagerly and without dropout; its outputs and layers do not change. Weights are also
    computed for mechanisms that never build a matrix of scores; this needs memory proportional to
    the square of the length.

    Args:
        model: The model, or a layer.
        inputs: Its inputs.

    Returns:
        The maps in the order of the calls; calls of a layer for one position after the other, as in
        a recurrent decoder, are one map. An empty list if the model has no attention.

    Raises:
        UserError: `model` is neither a model nor a layer.

    Examples:
        >>> model = TransformerEncoder(11, num_layers=2, hidden_dim=8, num_heads=2)
        >>> maps = attention_maps(model, {"token_ids": np.array([[5, 7, 3, 0]])})
        >>> [found.weights.shape for found in maps]  # (batch, heads, target, source)
        [(1, 2, 4, 4), (1, 2, 4, 4)]
    """
    require(
        isinstance(model, keras.layers.Layer),
        "`model` must be a Keras model or layer.",
        model=type(model).__name__,
    )
    with _eagerly(), capture_attention() as found:
        model(inputs, training=False)
    runs = {
        id(layer.cell): layer
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.RNN)
    }
    calls: dict[str, int] = {}
    maps = []
    for steps in _joined(found):
        run = runs.get(id(steps[0].layer))
        steps = _without_trial(steps, run)
        name = getattr(steps[0].layer, "path", None) or steps[0].layer.name
        calls[name] = calls.get(name, 0) + 1
        shown = _over_steps(steps) if steps[0].is_step else _arrays(steps[0])
        if isinstance(shown.layer, IntraAttentionCell):
            shown = _over_states(shown, run is not None and run.go_backwards)
        maps.append(_map(shown, f"{name} ({calls[name]})" if calls[name] > 1 else name))
    return maps


@contextlib.contextmanager
def _eagerly() -> Iterator[None]:
    """Runs compiled functions and loops inside a model eagerly."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        with jax.disable_jit():
            yield
    elif backend == "tensorflow":
        import tensorflow as tf

        before = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(True)
        try:
            yield
        finally:
            tf.config.run_functions_eagerly(before)
    else:
        yield


def _joined(found: list[CapturedAttention]) -> list[list[CapturedAttention]]:
    """Groups calls so that the steps of a loop are together.

    Layers in a loop alternate. It ends with a call that is not a step, or with one that has fewer
    visible positions than the previous step.
    """
    running: dict[int, list[CapturedAttention]] = {}
    calls: list[list[CapturedAttention]] = []
    for shown in found:
        if not shown.is_step:
            calls.append([shown])
            running.clear()
            continue
        key = id(shown.layer)
        if key not in running or _begins_anew(running[key][-1], shown):
            running[key] = []
            calls.append(running[key])
        running[key].append(shown)
    return calls


def _begins_anew(before: CapturedAttention, shown: CapturedAttention) -> bool:
    if before.weights.shape != shown.weights.shape:
        return True
    return bool(ops.any(ops.logical_and(before.source_real, ops.logical_not(shown.source_real))))


def _without_trial(
    steps: list[CapturedAttention], run: keras.layers.RNN | None
) -> list[CapturedAttention]:
    """The steps without the one that Keras makes on TensorFlow before a loop to infer shapes."""
    tries = run is not None and not run.unroll and keras.backend.backend() == "tensorflow"
    return steps[1:] if tries else steps


def _arrays(shown: CapturedAttention) -> CapturedAttention:
    pattern = dict(shown.pattern)
    if "buckets" in pattern:
        pattern["buckets"] = np.asarray(ops.convert_to_numpy(pattern["buckets"]))
    return dataclasses.replace(
        shown,
        weights=ops.convert_to_numpy(ops.cast(shown.weights, "float32")),
        query_real=ops.convert_to_numpy(shown.query_real),
        source_real=ops.convert_to_numpy(shown.source_real),
        pattern=pattern,
    )


def _over_steps(steps: list[CapturedAttention]) -> CapturedAttention:
    arrays = [_arrays(step) for step in steps]
    return dataclasses.replace(
        arrays[-1],
        weights=np.concatenate([step.weights for step in arrays], axis=2),
        query_real=np.concatenate([step.query_real for step in arrays], axis=1),
        source_real=np.any([step.source_real for step in arrays], axis=0),
    )


def _over_states(shown: CapturedAttention, backwards: bool) -> CapturedAttention:
    """A cell's earlier states as positions, possibly preceded by an initial state."""
    batch, heads, length, kept = shown.weights.shape
    weights = np.zeros((batch, heads, length, 1 + length), np.float32)
    for step in range(length):
        first = step - kept  # the position of the first state kept; -1 is the initial state
        cut = max(-1 - first, 0)
        places = slice(first + cut + 1, first + kept + 1)
        weights[:, :, step, places] = shown.weights[:, :, step, cut:]
    begins_with_state = bool(weights[..., 0].any())
    if backwards:
        weights = np.concatenate([weights[..., :1], weights[..., :0:-1]], axis=-1)[:, :, ::-1]
    if not begins_with_state:
        weights = weights[..., 1:]
    real = np.ones((batch, length), bool)
    before = int(begins_with_state)
    return dataclasses.replace(
        shown,
        weights=weights,
        query_real=real,
        source_real=np.pad(real, ((0, 0), (before, 0)), constant_values=True),
        is_causal=not backwards,
        columns_before=before,
        pattern={"reads": "backwards" if backwards else "forwards"},
    )


def _map(shown: CapturedAttention, name: str) -> AttentionMap:
    fields = {field.name for field in dataclasses.fields(AttentionMap)}
    given = {
        field.name: getattr(shown, field.name)
        for field in dataclasses.fields(shown)
        if field.name in fields
    }
    return AttentionMap(name=name, mechanism=type(shown.layer).__name__, **given)

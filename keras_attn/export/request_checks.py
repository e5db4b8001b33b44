"""Checks of requests inside a served graph."""

from collections.abc import Mapping

import tensorflow as tf

from keras_attn.ops.integer_product import are_weights_constants, require_exact_sums
from keras_attn.tasks.serving import ServingFunction


def checked(function: ServingFunction, **inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
    """Checks inputs inside a graph, then calls the served function.

    The length of inputs is limited, because time and memory of attention grow with its square.

    Args:
        function: The served function.
        **inputs: Its inputs.

    Returns:
        The outputs of the function.

    Raises:
        InvalidArgumentError: The inputs differ in their numbers of rows, or a row of ids has more
            than the function's `longest` or one below 0, or the processor does not sum products of
            integers exactly and the function needs it; when the graph runs.
    """
    checks = [require_exact_sums()] if are_weights_constants() else []
    if len(inputs) > 1:
        rows = [tf.shape(tensor)[0] for tensor in inputs.values()]
        message = f"The inputs {', '.join(inputs)} must have equal numbers of rows. Received:"
        checks.append(tf.debugging.Assert(tf.reduce_all(tf.equal(rows, rows[0])), [message, *rows]))
    for name, most in function.longest.items():
        length, least = tf.shape(inputs[name])[1], tf.reduce_min(tf.pad(inputs[name], [[0, 1]] * 2))
        message = f"The input {name} must have at most {most} ids in a row. Received:"
        checks.append(tf.debugging.Assert(length <= most, [message, length]))
        message = f"The input {name} must not contain ids below 0. Received:"
        checks.append(tf.debugging.Assert(least >= 0, [message, least]))
    with tf.control_dependencies(checks):
        inputs = {name: tf.identity(tensor) for name, tensor in inputs.items()}
    return function.function(**inputs)

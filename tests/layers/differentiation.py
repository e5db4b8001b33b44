"""Gradients of layers on the backend in use, and central differences that judge them."""

import contextlib
from unittest import mock

import keras
import numpy as np

STEP = 1e-5


def in_float64():
    """TensorFlow always may; JAX, and Keras on torch, compute in float64 only where told to."""
    if keras.backend.backend() == "tensorflow":
        return contextlib.nullcontext()
    if keras.backend.backend() == "torch":
        from keras.src.backend.common.dtypes import BIT64_TO_BIT32_DTYPE

        return mock.patch.dict(BIT64_TO_BIT32_DTYPE, float64="float64")
    import jax

    return jax.enable_x64(True)


def value_and_gradients(function):
    """The function of a list of tensors, a number, as one of arrays that gives its gradients too.

    Where the backend compiles, it does so at the first call, for many more.
    """
    if keras.backend.backend() == "jax":
        import jax

        # The compiler's time is what counts here.
        options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
        return jax.jit(jax.value_and_grad(function), compiler_options=options)
    if keras.backend.backend() == "torch":
        import torch

        def run(arrays):
            tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
            value = function(tensors)
            grads = torch.autograd.grad(value, tensors, materialize_grads=True) if tensors else ()
            return value.detach(), grads

        return run
    import tensorflow as tf

    @tf.function(autograph=False)
    def run(tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(tensors)
        return value, tape.gradient(value, tensors, unconnected_gradients="zero")

    return lambda arrays: run([tf.convert_to_tensor(array) for array in arrays])


def assert_gradients_are_slopes(function, arrays, names, seed=0):
    """Holds each gradient against a central difference along a random direction, in float64.

    Args:
        function: Takes a list of float64 tensors, returns a number.
        arrays: Where to differentiate.
        names: What each array is, for messages.
        seed: Of the directions.
    """
    rng = np.random.default_rng(seed)
    run = value_and_gradients(function)
    found = [keras.ops.convert_to_numpy(gradient) for gradient in run(arrays)[1]]
    for place, (name, gradient) in enumerate(zip(names, found, strict=True)):
        assert gradient.dtype == "float64", name
        direction = rng.normal(size=gradient.shape)
        ends = []
        for step in (STEP, -STEP):
            moved = list(arrays)
            moved[place] = arrays[place] + step * direction
            ends.append(float(run(moved)[0]))
        slope = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose(
            np.sum(gradient * direction), slope, rtol=1e-6, atol=1e-7, err_msg=name
        )

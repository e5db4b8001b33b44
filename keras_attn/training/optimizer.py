"""Keras optimizers that take gradients which are already summed over replicas."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from keras_attn.training.settings import TrainingSettings


class _SummedGradients:
    """Mixin: no second sum over replicas.

    A Keras optimizer clips each replica's gradient and sums afterwards, which is not clipping the
    whole gradient. The training step sums first, so what arrives here is equal on all replicas.
    """

    def _all_reduce_sum_gradients(self, grads_and_vars: Iterable) -> list:
        return list(grads_and_vars)


class _FusedUpdate:
    """Mixin: TensorFlow's one kernel for Adam's update, instead of a dozen passes over memory."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates a variable and its moments, by the formula of `keras.optimizers.Adam`."""
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index].value, self._velocities[index].value
        step = tf.cast(self.iterations + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=momentum.handle,
            v=velocity.handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step),
            beta2_power=tf.pow(tf.cast(self.beta_2, variable.dtype), step),
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )


class _Adam(_FusedUpdate, _SummedGradients, keras.optimizers.Adam):
    pass


class _AdamW(_FusedUpdate, _SummedGradients, keras.optimizers.AdamW):
    pass


def make_optimizer(
    settings: TrainingSettings, schedule: Any, variables: list[keras.Variable], loss_scaling: bool
) -> keras.optimizers.Optimizer:
    """Adam (AdamW with `weight_decay`) with clipping by the norm of the whole gradient.

    Args:
        settings: The numbers of the run.
        schedule: Keras learning-rate schedule or a number.
        variables: Trainable variables; the optimizer is built for them.
        loss_scaling: Whether to scale the loss dynamically, as float16 needs.

    Returns:
        A built optimizer, to be used in a replica context with gradients summed over replicas.
    """
    arguments = {
        "learning_rate": schedule,
        "beta_1": settings.beta_1,
        "beta_2": settings.beta_2,
        "epsilon": settings.epsilon,
        "global_clipnorm": settings.clip_norm or None,
    }
    if settings.weight_decay:
        optimizer = _AdamW(weight_decay=settings.weight_decay, name="adamw", **arguments)
        vectors = [variable for variable in variables if len(variable.shape) < 2]
        if vectors:
            optimizer.exclude_from_weight_decay(var_list=vectors)
    else:
        optimizer = _Adam(name="adam", **arguments)
    if loss_scaling:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(variables)
    return optimizer

"""Keras optimizers that take gradients which are already summed over replicas."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from keras_attn.tensors import Tensor
from keras_attn.training.settings import TrainingSettings


class _SummedGradients:
    """Mixin: no second sum over replicas.

    The training step sums before it clips, so what arrives here is equal on all replicas.
    """

    def _all_reduce_sum_gradients(self, grads_and_vars: Iterable) -> list:
        return list(grads_and_vars)


class _AveragedWeights:
    """Mixin: the moving average of the weights, updated with each of them.

    Keras updates the averages outside of `update_step`, where tf.distribute refuses it. The decay
    rises to `ema_momentum` as the average gets a longer past to draw on: t / (9 + t) after t
    updates, so that the first weights are the first average.
    """

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Any) -> None:
        """Updates a variable, and then its average."""
        super().update_step(gradient, variable, learning_rate)
        if self.use_ema:
            average = self._model_variables_moving_average[self._get_variable_index(variable)]
            updates = tf.cast(self.iterations, variable.dtype)
            most = tf.cast(self.ema_momentum, variable.dtype)
            decay = tf.minimum(most, updates / (9 + updates))
            average.value.assign_sub((1 - decay) * (average.value - variable))

    def _update_model_variables_moving_average(self, variables: list) -> None:
        pass


class _FusedUpdate:
    """Mixin: TensorFlow's one kernel for Adam's update, instead of a dozen passes over memory."""

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Any) -> None:
        """Updates a variable and its moments, by the formula of `keras.optimizers.Adam`."""
        index = self._get_variable_index(variable)
        moments = self._momentums[index], self._velocities[index]
        _adam_update(self, gradient, variable, learning_rate, moments, (self.beta_1, self.beta_2))


class _Adam(_AveragedWeights, _FusedUpdate, _SummedGradients, keras.optimizers.Adam):
    pass


class _Muon(_AveragedWeights, _SummedGradients, keras.optimizers.Muon):
    """Keras' Muon, with half-precision products where the model has them, and the fused Adam."""

    def __init__(self, half_precision: bool, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._half_precision = half_precision

    def zeropower_via_newtonschulz5(self, x: Tensor, steps: int) -> Any:
        """The orthogonal matrix nearest to `x`, roughly; bfloat16 is enough for it."""
        if not self._half_precision:
            return super().zeropower_via_newtonschulz5(x, steps)
        scaled = tf.cast(x / (tf.norm(x) + 1e-7), tf.bfloat16)
        return tf.cast(super().zeropower_via_newtonschulz5(scaled, steps), x.dtype)

    def lr_adjust(self, x: Tensor) -> Any:
        """`x` times 0.2 √(larger side), as Keras has it, which fails in float64."""
        return x * (self.rms_rate * max(x.shape) ** 0.5)

    def _adamw_update_step(
        self, gradient: Tensor, variable: Any, learning_rate: Any, m: Any, v: Tensor
    ) -> None:
        betas = self.adam_beta_1, self.adam_beta_2
        _adam_update(self, gradient, variable, learning_rate, (m, v), betas)

    def _apply_weight_decay(self, variables: list) -> None:
        # Muon's own assigns to a replica's variables one by one, which tf.distribute refuses.
        keras.optimizers.Optimizer._apply_weight_decay(self, variables)


def _adam_update(
    optimizer: keras.optimizers.Optimizer,
    gradient: Tensor,
    variable: Any,
    learning_rate: Any,
    moments: tuple[keras.Variable, keras.Variable],
    betas: tuple[float, float],
) -> None:
    step = tf.cast(optimizer.iterations + 1, variable.dtype)
    (momentum, velocity), (beta_1, beta_2) = moments, betas
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.value.handle,
        v=velocity.value.handle,
        beta1_power=tf.pow(tf.cast(beta_1, variable.dtype), step),
        beta2_power=tf.pow(tf.cast(beta_2, variable.dtype), step),
        lr=tf.cast(learning_rate, variable.dtype),
        beta1=beta_1,
        beta2=beta_2,
        epsilon=optimizer.epsilon,
        grad=tf.cast(gradient, variable.dtype),
    )


def make_optimizer(
    settings: TrainingSettings, schedule: Any, variables: list[keras.Variable], loss_scaling: bool
) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a run; `TrainingStep` clips the gradients.

    Args:
        settings: The numbers of the run.
        schedule: Keras learning-rate schedule or a number.
        variables: Trainable variables; the optimizer is built for them.
        loss_scaling: Whether to scale the loss dynamically, as float16 needs.

    Returns:
        A built optimizer, to be used in a replica context with gradients summed over replicas.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> schedule = WarmupCosine(peak=0.001, warmup_steps=10, total_steps=110)
        >>> settings = TrainingSettings(weight_decay=0.01, ema_decay=0.999)
        >>> optimizer = make_optimizer(settings, schedule, model.trainable_variables, False)
        >>> optimizer.name, optimizer.weight_decay, optimizer.ema_momentum
        ('adam', 0.01, 0.999)
    """
    shared = {
        "learning_rate": schedule,
        "epsilon": settings.epsilon,
        "weight_decay": settings.weight_decay or None,
        "use_ema": settings.ema_decay > 0,
        "ema_momentum": settings.ema_decay,
    }
    if settings.optimizer == "muon":
        optimizer = _Muon(
            half_precision=settings.precision.startswith("mixed"),
            adam_beta_1=settings.beta_1,
            adam_beta_2=settings.beta_2,
            name="muon",
            **shared,
        )
    else:
        optimizer = _Adam(beta_1=settings.beta_1, beta_2=settings.beta_2, name="adam", **shared)
    vectors = [variable for variable in variables if len(variable.shape) < 2]
    if settings.weight_decay and vectors:
        optimizer.exclude_from_weight_decay(var_list=vectors)
    if loss_scaling:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(variables)
    return optimizer


@contextlib.contextmanager
def averaged_weights(
    optimizer: keras.optimizers.Optimizer, variables: list[keras.Variable]
) -> Iterator[None]:
    """Gives variables the moving averages that the optimizer has of them, if any, for a while.

    Args:
        optimizer: From `make_optimizer`.
        variables: Those that it was made for; they have their own values again afterwards.
    """
    updated = int(optimizer.iterations) > 0  # averages begin with the first update
    if not (updated and getattr(optimizer, "inner_optimizer", optimizer).use_ema):
        yield
        return
    own = [variable.numpy() for variable in variables]
    optimizer.finalize_variable_values(variables)
    try:
        yield
    finally:
        for variable, value in zip(variables, own, strict=True):
            variable.assign(value)

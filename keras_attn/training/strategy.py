"""Devices: which tf.distribute strategy, and one dropout stream for each replica."""

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

from keras_attn.training.settings import STRATEGIES
from keras_attn.validation import UserError, require_one_of

# Distance between the keys of two replicas: large and odd, so that they do not meet the keys that
# layers draw from small or neighbouring seeds.
_REPLICA_STRIDE = 0x9E3779B1


def make_strategy(name: str = "auto") -> tf.distribute.Strategy:
    """The strategy of that name; build the model inside its `scope()`.

    Make one for GPUs only once in a process: TensorFlow's collective operations of a second one
    collide with those of the first.

    Args:
        name: `"one"` (TensorFlow's default device), `"mirrored"` (all GPUs of this machine, or all
            logical CPUs where there is no GPU), or `"auto"` (mirrored with two GPUs or more).

    Raises:
        UserError: Unknown name.
    """
    require_one_of("strategy", name, STRATEGIES)
    if resolve_strategy(name) == "one":
        return tf.distribute.get_strategy()
    gpus = tf.config.list_logical_devices("GPU")
    if gpus:
        return tf.distribute.MirroredStrategy([device.name for device in gpus])
    # Collective operations of two strategies in one process get into each other's way.
    return tf.distribute.MirroredStrategy(
        [device.name for device in tf.config.list_logical_devices("CPU")],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def resolve_strategy(name: str) -> str:
    """`"one"` or `"mirrored"` for `"auto"`; other names as they are."""
    if name != "auto":
        return name
    return "mirrored" if len(tf.config.list_logical_devices("GPU")) > 1 else "one"


def resolve_jit(name: str) -> str:
    """`"on"` or `"off"` for `"auto"`: on with a GPU, off on CPUs, where it costs more."""
    if name != "auto":
        return name
    return "on" if tf.config.list_logical_devices("GPU") else "off"


def strategy_of(model: keras.Model) -> tf.distribute.Strategy:
    """The strategy in whose scope the model's variables were made."""
    for variable in model.variables:
        strategy = getattr(variable.value, "distribute_strategy", None)
        if strategy is not None:
            return strategy
    return tf.distribute.get_strategy()


def check_strategy(name: str, strategy: tf.distribute.Strategy) -> None:
    """Raises a UserError when the model was not built for the strategy that settings ask for."""
    built = "mirrored" if isinstance(strategy, tf.distribute.MirroredStrategy) else "one"
    if name not in ("auto", built):
        raise UserError(
            "The model must be built inside `make_strategy(settings.strategy).scope()`. "
            f"Received: strategy={name!r}, a model built for {built!r}."
        )


@contextlib.contextmanager
def replica_random_streams(model: keras.Model) -> Iterator[None]:
    """Inside a replica function: each replica draws random numbers of its own.

    Keras layers would draw the same dropout mask on every replica, because the states of their
    generators are mirrored. Inside this scope each replica reads states whose key is moved by its
    number; what is stored afterwards is the same everywhere, so the replicas stay in step and a
    checkpoint holds everything. On one device, and on the first replica, streams are unchanged.

    Args:
        model: The model that is called inside the scope.
    """
    context = tf.distribute.get_replica_context()
    states = [v for v in model.variables if v.name == "seed_generator_state"]
    if context.num_replicas_in_sync == 1 or not states:
        yield
        return
    replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
    offset = tf.stack([replica * _REPLICA_STRIDE, 0])  # a state is (key, counter)
    moved = [(state, state.value + offset) for state in states]
    with keras.StatelessScope(state_mapping=moved) as scope:
        yield
    for variable in model.non_trainable_variables:
        value = scope.get_current_value(variable)
        if value is not None:
            is_state = any(variable is state for state in states)
            variable.assign(value - offset if is_state else value)

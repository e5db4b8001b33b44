"""Strategies of tf.distribute: their batches, and one dropout stream for each replica."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

# There is no public way to set the time limits of a cluster.
from tensorflow.python.eager import context
from tensorflow.python.eager.context import coordination_config_pb2

from keras_attn.data import EpochPlan, batch_dataset
from keras_attn.renamed import renamed_arguments
from keras_attn.training.settings import STRATEGIES
from keras_attn.training.workers.cluster import Cluster, WorkerLost, ended_by_alarm, wait_for_all
from keras_attn.validation import UserError, require, require_one_of

# Distance between the keys of two replicas: large and odd, so that they do not meet the keys that
# layers draw from small or neighboring seeds.
_REPLICA_STRIDE = 0x9E3779B1
_MOST_SHARDS = 4


@renamed_arguments(join_seconds="join_timeout", lost_seconds="heartbeat_timeout")
def make_strategy(
    name: str = "auto", join_timeout: float = 300.0, heartbeat_timeout: float = 10.0
) -> tf.distribute.Strategy:
    """Makes a strategy of `tf.distribute`; build the model inside its `scope()`.

    Make one for GPUs only once in a process: TensorFlow's collective operations of a second one
    collide with those of the first. That of several workers must be made before TensorFlow does
    anything else.

    Args:
        name: `"one"` (TensorFlow's default device), `"mirrored"` (all GPUs of this machine, or all
            logical CPUs where there is no GPU), `"multi_worker"` (the workers of TF_CONFIG),
            `"tpu"` (the TPU that TPU_NAME names, or this machine's), or `"auto"`, as
            `resolve_strategy` chooses.
        join_timeout: Seconds to wait for the other workers.
        heartbeat_timeout: Seconds without a heartbeat after which a worker is lost.

    Raises:
        UserError: The name is unknown, TF_CONFIG does not name the workers, or there is no TPU.
        WorkerLost: Not all workers joined in time.

    Examples:
        >>> strategy = make_strategy("one")
        >>> with strategy.scope():
        ...     model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> strategy.num_replicas_in_sync
        1
    """
    require_one_of("strategy", name, STRATEGIES)
    name = resolve_strategy(name)
    if name == "one":
        return tf.distribute.get_strategy()
    if name == "multi_worker":
        return _join_workers(join_timeout, heartbeat_timeout)
    if name == "tpu":
        return _connect_to_tpu()
    gpus = tf.config.list_logical_devices("GPU")
    if gpus:
        return tf.distribute.MirroredStrategy([device.name for device in gpus])
    # Collective operations of two strategies in one process get into each other's way.
    return tf.distribute.MirroredStrategy(
        [device.name for device in tf.config.list_logical_devices("CPU")],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def resolve_strategy(name: str) -> str:
    """Returns the strategy that `"auto"` means on this machine; other names as they are.

    `"multi_worker"` where TF_CONFIG has several workers, `"mirrored"` with two GPUs or more,
    otherwise `"one"`.

    Raises:
        UserError: TF_CONFIG has several workers, and another strategy would not use them.

    Examples:
        >>> resolve_strategy("auto")  # one CPU, or one GPU
        'one'
    """
    cluster = Cluster.from_environment()
    several = cluster is not None and len(cluster.workers) > 1
    require(
        not several or name in ("auto", "multi_worker"),
        "`strategy` must be 'multi_worker' or 'auto' where --workers or TF_CONFIG name several.",
        strategy=name,
    )
    if name != "auto":
        return name
    if several:
        return "multi_worker"
    return "mirrored" if len(tf.config.get_visible_devices("GPU")) > 1 else "one"


def resolve_jit(name: str, strategy: str = "one") -> str:
    """Returns whether XLA compiles, where `"auto"` means on with a GPU and off without.

    Args:
        name: `"on"`, `"off"` or `"auto"`.
        strategy: Name of the strategy; a TPU always compiles.

    Returns:
        `"on"` or `"off"`.

    Raises:
        UserError: `"off"` for a TPU, which always compiles.

    Examples:
        >>> resolve_jit("auto")  # without a GPU
        'off'
        >>> resolve_jit("auto", strategy="tpu")
        'on'
    """
    if strategy == "tpu":
        require(name != "off", "A TPU runs what XLA compiled: `jit` must not be off.", jit=name)
        return "on"
    if name != "auto":
        return name
    return "on" if tf.config.get_visible_devices("GPU") else "off"


def resolve_shards(shards: int, jit: str, strategy: str) -> int:
    """The number of shards of a batch that 0 means.

    One per core, at most four, if one CPU computes without XLA; else 1. On two cores two shards
    take 0.78 of the time of one, and four are slower than two.
    """
    alone = strategy == "one" and jit == "off" and not tf.config.get_visible_devices("GPU")
    return shards or (min(_cores(), _MOST_SHARDS) if alone else 1)


def share_cores(shards: int) -> None:
    """Divides the cores between the shards of a batch, unless TensorFlow is initialized already."""
    if shards > 1:
        with contextlib.suppress(RuntimeError):
            tf.config.threading.set_intra_op_parallelism_threads(max(_cores() // shards, 1))
            tf.config.threading.set_inter_op_parallelism_threads(shards)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def compiles_whole_updates(strategy: tf.distribute.Strategy) -> bool:
    """Whether its devices run only programs in which every shape is known, as TPUs do."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def _connect_to_tpu() -> tf.distribute.Strategy:
    name = os.environ.get("TPU_NAME", "local")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(name)
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        reason = str(error).partition("\n")[0]
        reason = reason if len(reason) <= 100 else f"{reason[:100]}…"
        raise UserError(
            "No TPU can be reached: the environment variable TPU_NAME names one, without it this "
            f"machine's own is taken. Received: TPU_NAME={os.environ.get('TPU_NAME')!r} ({reason})"
        ) from error


def _join_workers(join_timeout: float, heartbeat_timeout: float) -> tf.distribute.Strategy:
    cluster = Cluster.from_environment()
    require(
        cluster is not None,
        "The strategy 'multi_worker' needs the workers, in TF_CONFIG or by --workers.",
        TF_CONFIG=None,
    )
    wait_for_all(cluster, join_timeout)
    milliseconds = int(heartbeat_timeout * 1000)
    # What MultiWorkerMirroredStrategy sets by itself, but for the time limits.
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        cluster_register_timeout_in_ms=int(join_timeout * 1000),
        heartbeat_timeout_in_ms=milliseconds,
        shutdown_barrier_timeout_in_ms=milliseconds,
        coordinated_jobs=[
            coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=len(cluster.workers))
        ],
    )
    cluster.to_environment()  # with the chief, if there is one, among the workers
    others = cluster.named({*range(len(cluster.workers))} - {cluster.index})
    # Should a worker die just now, TensorFlow waits for it for ever and lets no Python run.
    with ended_by_alarm(join_timeout, f"Worker {others} did not join within {join_timeout:g} s."):
        try:
            return tf.distribute.MultiWorkerMirroredStrategy()
        except tf.errors.OpError as error:
            reason = error.message.partition("\n")[0][:200]
            raise WorkerLost(f"Not all workers joined: {reason}") from error


def strategy_of(model: keras.Model) -> tf.distribute.Strategy:
    """The strategy in whose scope the model's variables were made."""
    for variable in model.variables:
        strategy = getattr(variable.value, "distribute_strategy", None)
        if strategy is not None:
            return strategy
    return tf.distribute.get_strategy()


def check_strategy(name: str, strategy: tf.distribute.Strategy) -> None:
    """Raises a UserError when the model was not built for the strategy that settings ask for."""
    kinds = {
        tf.distribute.MirroredStrategy: "mirrored",
        tf.distribute.MultiWorkerMirroredStrategy: "multi_worker",
        tf.distribute.TPUStrategy: "tpu",
    }
    built = next((name for kind, name in kinds.items() if isinstance(strategy, kind)), "one")
    if name not in ("auto", built):
        raise UserError(
            "The model must be built inside `make_strategy(settings.strategy).scope()`. "
            f"Received: strategy={name!r}, a model built for {built!r}."
        )


def distributed_batches(
    strategy: tf.distribute.Strategy, examples: Any, plan: EpochPlan, skip: int = 0
) -> Iterator[Any]:
    """Iterates over the global batches of a plan, each divided over the replicas.

    Args:
        strategy: The strategy that will run on them.
        examples: What the plan was made of.
        plan: The batches of an epoch.
        skip: Global batches to leave out at the beginning.

    Yields:
        `(inputs, labels)`: tensors on one device, else one part for each replica.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        yield from batch_dataset(examples, plan, skip=skip)
        return

    def dataset(context: tf.distribute.InputContext) -> tf.data.Dataset:
        local = replicas // context.num_input_pipelines
        return batch_dataset(
            examples,
            plan,
            skip=skip,
            replicas=replicas,
            first_replica=context.input_pipeline_id * local,
            local_replicas=local,
        )

    yield from strategy.distribute_datasets_from_function(dataset)


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

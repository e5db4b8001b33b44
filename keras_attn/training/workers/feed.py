"""Planned batches, delivered to the replicas in order."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_attn.data import EpochPlan, batch_dataset


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

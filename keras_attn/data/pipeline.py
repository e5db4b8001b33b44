"""Datasets that stream planned batches to a training loop."""

from collections.abc import Iterator

import tensorflow as tf

from keras_attn.data.batching import EpochPlan
from keras_attn.data.examples.base import Batch, Examples
from keras_attn.validation import require, require_positive

_BATCHES_UNTIL_RELEASE = 16


def batch_dataset(
    examples: Examples,
    plan: EpochPlan,
    skip: int = 0,
    replicas: int = 1,
    first_replica: int = 0,
    local_replicas: int | None = None,
    prefetch: int = 8,
) -> tf.data.Dataset:
    """Streams the batches of an epoch, each divided over the replicas.

    Every global batch gives one element per replica, in the order of the replicas. Its rows are
    divided as evenly as possible and all parts are padded to the same lengths. A replica without
    rows gets one row of padding. With static shapes, every replica gets the same number of rows,
    filled up with padding.

    Args:
        examples: The tokenized examples.
        plan: The batches of the epoch.
        skip: Number of global batches to skip at the beginning, at no cost.
        replicas: Number of replicas that share a global batch, over all workers.
        first_replica: The first replica that this process feeds.
        local_replicas: Number of replicas this process feeds; None for all from `first_replica`.
        prefetch: Number of elements made ahead.

    Returns:
        A dataset of known size of `(inputs, labels)` as `Examples.assemble` makes them.
        Element `k` is for replica `first_replica + k % local_replicas`, of the global batch
        `skip + k // local_replicas`.

    Raises:
        UserError: `skip` or the replicas are out of range.

    Examples:
        >>> texts = ["bad", "cab", "decade", "beaded"]
        >>> examples = TextExamples.from_texts(texts, CharacterTokenizer("abcde"))
        >>> plan = plan_epoch(examples, batch_tokens=16, seed=1)
        >>> for inputs, labels in batch_dataset(examples, plan):
        ...     print(inputs["token_ids"].shape, labels.shape)
        (2, 7) (2, 7)
        (2, 4) (2, 4)
    """
    require_positive(replicas=replicas, prefetch=prefetch)
    if local_replicas is None:
        local_replicas = replicas - first_replica
    require(
        first_replica >= 0 and 0 < local_replicas <= replicas - first_replica,
        "`first_replica` and `local_replicas` must lie within `replicas`.",
        first_replica=first_replica,
        local_replicas=local_replicas,
        replicas=replicas,
    )
    require(
        0 <= skip <= len(plan),
        f"`skip` must lie within the {len(plan)} batches of the plan.",
        skip=skip,
    )

    def generate() -> Iterator[Batch]:
        for place in range(skip, len(plan)):
            if place % _BATCHES_UNTIL_RELEASE == 0:
                for rows in examples.sides.values():
                    rows.release()
            yield from _parts(
                examples,
                plan,
                place,
                replicas,
                range(first_replica, first_replica + local_replicas),
            )

    dataset = tf.data.Dataset.from_generator(generate, output_signature=examples.signature)
    size = (len(plan) - skip) * local_replicas
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(size))
    options = tf.data.Options()
    # Batches are divided over the replicas already.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    # There is nothing to tune, and closing a tuned iterator waits for the tuner, for up to a
    # minute at the end of every epoch.
    options.autotune.enabled = False
    return dataset.prefetch(prefetch).with_options(options)


def _parts(
    examples: Examples, plan: EpochPlan, place: int, replicas: int, wanted: range
) -> Iterator[Batch]:
    """The parts of one global batch that belong to the wanted replicas."""
    indices = plan[place]
    rows, *lengths = plan.shapes[place]
    smaller, larger = divmod(len(indices), replicas)
    for replica in wanted:
        begin = replica * smaller + min(replica, larger)
        part = indices[begin : begin + smaller + (replica < larger)]
        # -(-a // b) is a / b rounded up.
        height = -(-rows // replicas) if plan.static else max(len(part), 1)
        yield examples.assemble(part, (height, *lengths))

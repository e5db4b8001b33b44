import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import batch_dataset, plan_epoch
from keras_attn.validation import UserError
from tests.data.made import assert_batches_equal, naive_batch, random_examples
from tests.refusals import message_of

STATIC = pytest.mark.parametrize("static_shapes", [False, True])


class CountingExamples:
    """Examples that remember how many batches were assembled."""

    def __init__(self, examples):
        self.examples = examples
        self.signature, self.sides = examples.signature, examples.sides
        self.assembled = 0

    def assemble(self, *arguments):
        self.assembled += 1
        return self.examples.assemble(*arguments)


@pytest.fixture(scope="module")
def examples():
    return random_examples(499)


def batches_of(dataset):
    return list(dataset.as_numpy_iterator())


def joined(parts):
    """Parts one after the other, without rows of nothing but padding."""
    arrays = [
        np.concatenate(arrays)
        for arrays in zip(
            *((inputs["source_ids"], inputs["target_ids"], labels) for inputs, labels in parts),
            strict=True,
        )
    ]
    real = arrays[2].any(axis=1)
    source_ids, target_ids, labels = (array[real] for array in arrays)
    return {"source_ids": source_ids, "target_ids": target_ids}, labels


def test_batches_of_a_plan(examples):
    plan = plan_epoch(examples, 307, 1)
    dataset = batch_dataset(examples, plan)
    assert int(dataset.cardinality()) == len(plan)
    inputs, labels = dataset.element_spec
    ids = tf.TensorSpec([None, None], tf.int32)
    assert (inputs, labels) == ({"source_ids": ids, "target_ids": ids}, ids)
    batches = batches_of(dataset)
    assert len(batches) == len(plan)
    for batch, rows in zip(batches, plan, strict=True):
        assert_batches_equal(batch, naive_batch(examples, rows))


@STATIC
@pytest.mark.parametrize("replicas", [2, 3, 7])
def test_parts_make_the_batch(examples, replicas, static_shapes):
    # 131 tokens make batches of few rows, some fewer than seven.
    plan = plan_epoch(examples, 131, 1, static_shapes=static_shapes)
    parts = batches_of(batch_dataset(examples, plan, replicas=replicas))
    assert len(parts) == replicas * len(plan)
    for place, rows in enumerate(plan):
        group = parts[place * replicas : (place + 1) * replicas]
        inputs, labels = joined(group)
        expected_inputs, expected_labels = naive_batch(examples, rows)
        source, target = expected_inputs["source_ids"].shape[1], expected_labels.shape[1]
        cut = {
            "source_ids": inputs["source_ids"][:, :source],
            "target_ids": inputs["target_ids"][:, :target],
        }
        assert_batches_equal((cut, labels[:, :target]), (expected_inputs, expected_labels))
        real_rows = [int(labels.any(axis=1).sum()) for _, labels in group]
        assert max(real_rows) - min(real_rows) <= 1
        widths = {(inputs["source_ids"].shape[1], labels.shape[1]) for inputs, labels in group}
        assert len(widths) == 1
        if not static_shapes:
            heights = [len(labels) for _, labels in group]
            assert heights == [max(count, 1) for count in real_rows]
            assert widths == {(source, target)}
    # Some batch has fewer than seven rows.
    assert replicas < 7 or any(not labels.any() for _, labels in parts)


@pytest.mark.parametrize("replicas", [1, 3])
def test_static_shapes_are_few(examples, replicas):
    shapes = set()
    for epoch in (0, 1):
        plan = plan_epoch(examples, 131, 1, epoch, static_shapes=True)
        for inputs, labels in batches_of(batch_dataset(examples, plan, replicas=replicas)):
            assert inputs["target_ids"].shape == labels.shape
            assert inputs["source_ids"].shape[0] == labels.shape[0]
            shapes.add((*inputs["source_ids"].shape, labels.shape[1]))
        planned = {
            (-(-rows // replicas), source, target) for rows, source, target in plan.shapes.tolist()
        }
    assert shapes == planned
    assert len(shapes) <= 16


@STATIC
@pytest.mark.parametrize("replicas", [1, 2])
def test_skip_leaves_the_tail(examples, replicas, static_shapes):
    plan = plan_epoch(examples, 307, 1, static_shapes=static_shapes)
    whole = batches_of(batch_dataset(examples, plan, replicas=replicas))
    for skip in (1, 5, len(plan) - 1, len(plan)):
        dataset = batch_dataset(examples, plan, skip=skip, replicas=replicas)
        assert int(dataset.cardinality()) == (len(plan) - skip) * replicas
        tail = batches_of(dataset)
        assert len(tail) == (len(plan) - skip) * replicas
        for batch, expected in zip(tail, whole[skip * replicas :], strict=True):
            assert_batches_equal(batch, expected)


def test_skipped_batches_are_not_made(examples):
    plan = plan_epoch(examples, 307, 1)
    counting = CountingExamples(examples)
    batches_of(batch_dataset(counting, plan, skip=len(plan) - 2))
    assert counting.assembled == 2


def test_prefetch_is_bounded(examples):
    plan = plan_epoch(examples, 31, 1)
    counting = CountingExamples(examples)
    iterator = iter(batch_dataset(counting, plan, prefetch=3))
    next(iterator)
    del iterator
    assert len(plan) > 50 > counting.assembled


def test_workers_share_the_stream(examples):
    plan = plan_epoch(examples, 131, 1)
    whole = batches_of(batch_dataset(examples, plan, replicas=5))
    workers = [
        batches_of(
            batch_dataset(examples, plan, replicas=5, first_replica=first, local_replicas=local)
        )
        for first, local in ((0, 2), (2, 3))
    ]
    assert [len(parts) for parts in workers] == [2 * len(plan), 3 * len(plan)]
    streams = [iter(parts) for parts in workers]
    woven = [
        part
        for _ in range(len(plan))
        for stream, local in zip(streams, (2, 3), strict=True)
        for part in itertools.islice(stream, local)
    ]
    for batch, expected in zip(woven, whole, strict=True):
        assert_batches_equal(batch, expected)


def test_can_be_read_again(examples):
    dataset = batch_dataset(examples, plan_epoch(examples, 307, 1))
    for batch, expected in zip(batches_of(dataset), batches_of(dataset), strict=True):
        assert_batches_equal(batch, expected)


def test_is_not_sharded_again(examples):
    options = batch_dataset(examples, plan_epoch(examples, 307, 1)).options()
    policy = options.experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.OFF


def test_has_no_tuner(examples):
    # At the end of an epoch the loop would wait for it.
    assert batch_dataset(examples, plan_epoch(examples, 307, 1)).options().autotune.enabled is False


@pytest.mark.parametrize("skip", [-1, 4])
def test_skip_out_of_range(skip):
    examples = random_examples(7)
    plan = plan_epoch(examples, 61, None)
    assert len(plan) == 3
    assert (
        message_of(batch_dataset, examples, plan, skip=skip)
        == f"`skip` must lie within the 3 batches of the plan. Received: skip={skip}."
    )


@pytest.mark.parametrize(
    ("first", "local", "received"),
    [
        (-1, 2, "-1, local_replicas=2"),
        (3, None, "3, local_replicas=0"),
        (2, 2, "2, local_replicas=2"),
    ],
)
def test_replicas_out_of_range(examples, first, local, received):
    plan = plan_epoch(examples, 307, 1)
    with pytest.raises(UserError, match=f"first_replica={received}, replicas=3"):
        batch_dataset(examples, plan, replicas=3, first_replica=first, local_replicas=local)


@pytest.mark.parametrize("name", ["replicas", "prefetch"])
def test_bad_numbers(examples, name):
    with pytest.raises(UserError, match=f"`{name}` must be a positive integer.*{name}=0"):
        batch_dataset(examples, plan_epoch(examples, 307, 1), **{name: 0})

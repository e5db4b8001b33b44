"""Made data for these tests: examples of given lengths, and a naive batch to compare with."""

import hashlib

import numpy as np

from keras_attn.data import PairExamples, TokenRows


def made_examples(source_lengths, target_lengths, name="made"):
    """Rows of the given lengths (end id included) whose ids tell rows and places apart."""

    def flat(lengths, base):
        rows = [
            [base + 100 * row + place for place in range(length - 1)] + [2]
            for row, length in enumerate(lengths)
        ]
        return np.array([token for row in rows for token in row], np.int32)

    return PairExamples(
        source=TokenRows.of_lengths(flat(source_lengths, 1_000_000), source_lengths),
        target=TokenRows.of_lengths(flat(target_lengths, 5_000_000), target_lengths),
        indices=np.arange(len(source_lengths)),
        name=name,
    )


def random_examples(rows, seed=0, longest=30):
    """Rows of random lengths, those of the two sides related as in text."""
    generator = np.random.default_rng(seed)
    sources = generator.integers(2, longest, rows)
    targets = np.clip(sources + generator.integers(-3, 4, rows), 2, longest)
    return made_examples(sources.tolist(), targets.tolist())


def digest(plan):
    parts = [rows.astype("<i8").tobytes() for rows in plan] + [plan.shapes.astype("<i8").tobytes()]
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def naive_batch(examples, rows):
    """The three arrays of a batch, written out place by place."""
    sources, labels = (
        [side.ids[side.offsets[row] : side.offsets[row + 1]] for row in rows]
        for side in (examples.source, examples.target)
    )
    inputs = [[examples.start_id, *sequence[:-1]] for sequence in labels]
    return {"source_ids": padded(sources), "target_ids": padded(inputs)}, padded(labels)


def padded(sequences):
    width = max(len(sequence) for sequence in sequences)
    rows = [[*sequence, *[0] * (width - len(sequence))] for sequence in sequences]
    return np.array(rows, np.int32)


def assert_batches_equal(batch, expected):
    inputs, labels = batch
    expected_inputs, expected_labels = expected
    assert sorted(inputs) == ["source_ids", "target_ids"]
    for array, judge in (
        (inputs["source_ids"], expected_inputs["source_ids"]),
        (inputs["target_ids"], expected_inputs["target_ids"]),
        (labels, expected_labels),
    ):
        assert np.asarray(array).dtype == np.int32
        np.testing.assert_array_equal(array, judge)

"""Measures of labels; scikit-learn is the judge of all but the calibration."""

import numpy as np
import pytest
from sklearn import metrics as judge

from keras_attn.evaluation import LABELS, LabelCounts, calibration_error
from tests.refusals import refused

RANDOM = np.random.default_rng(3)
CASES = {
    "several": (RANDOM.choice(list("abcd"), 97), RANDOM.choice(list("abce"), 97)),
    "one label alone": (["a"] * 3, ["a"] * 3),
    "none correct": (["a", "b"], ["b", "a"]),
    "one item": (["a"], ["b"]),
}


@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("name", CASES)
def test_labels(name):
    references, predictions = map(list, CASES[name])
    counts = LabelCounts.of(references, predictions)
    expected = judge.classification_report(
        references, predictions, output_dict=True, zero_division=0
    )
    rows = counts.by_label()
    assert counts.labels == list(rows) == sorted({*references, *predictions})
    np.testing.assert_array_equal(
        counts.matrix, judge.confusion_matrix(references, predictions, labels=counts.labels)
    )
    for label, row in rows.items():
        of_label = expected[label]
        np.testing.assert_allclose(
            [row["precision"], row["recall"], row["f1"]],
            [100 * of_label[column] for column in ("precision", "recall", "f1-score")],
        )
        assert row["items"] == of_label["support"]
    found = [LABELS[name](counts) for name in ("accuracy", "macro_f1", "weighted_f1")]
    weighted = [
        judge.f1_score(references, predictions, average=kind, zero_division=0)
        for kind in ("macro", "weighted")
    ]
    accuracy = judge.accuracy_score(references, predictions)
    np.testing.assert_allclose(found, [100 * value for value in (accuracy, *weighted)])


def test_calibration():
    # Two bins: 0.9 of which one of two is right, and 0.6 of which two of three are.
    correct = [True, False, True, True, False]
    expected = 100 * (2 / 5 * abs(0.5 - 0.9) + 3 / 5 * abs(2 / 3 - 0.6))
    found = calibration_error(correct, [0.9, 0.9, 0.6, 0.6, 0.6])
    np.testing.assert_allclose(found, expected)
    assert calibration_error([True, True], [1.0, 1.0]) == 0.0
    assert calibration_error([False], [1.0]) == 100.0


def test_mistakes():
    refused("as many predicted labels .*predictions=1, references=2", LabelCounts.of, "ab", "a")
    refused("at least one. Received: predictions=0", LabelCounts.of, [], [])

"""Measures of sets of labels; scikit-learn is the judge."""

import numpy as np
import pytest
from sklearn import metrics as judge

from keras_attn.evaluation import LABEL_SETS, LabelSetCounts, best_thresholds
from tests.refusals import refused

LABELS = ["a", "b", "c", "d"]
RANDOM = np.random.default_rng(5)
CASES = {
    "several": (RANDOM.random((97, 4)) < 0.4, RANDOM.random((97, 4)) < 0.3),
    "a label that is never right": (np.array([[0, 1, 0, 0]]), np.array([[1, 1, 0, 0]])),
    "no label at all": (np.zeros((3, 4)), np.zeros((3, 4))),
}


def sets(marks):
    return [{label for label, mark in zip(LABELS, row, strict=True) if mark} for row in marks]


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_scikit_learn(name):
    correct, predicted = CASES[name]
    counts = LabelSetCounts.of(sets(correct), sets(predicted))
    seen = (np.asarray(correct) + np.asarray(predicted)).any(axis=0)
    assert counts.labels == [label for label, is_seen in zip(LABELS, seen, strict=True) if is_seen]
    found = {metric: function(counts) for metric, function in LABEL_SETS.items() if seen.any()}
    assert counts.exact_match == pytest.approx(100 * judge.accuracy_score(correct, predicted))
    for kind in ("micro", "macro", "weighted") if seen.any() else ():
        columns = (np.asarray(x)[:, seen] for x in (correct, predicted))
        expected = 100 * judge.f1_score(*columns, average=kind, zero_division=0)
        assert found[f"{kind}_f1"] == pytest.approx(expected)
    if name == "several":
        report = judge.classification_report(
            correct, predicted, target_names=LABELS, output_dict=True, zero_division=0
        )
        for label, row in counts.by_label().items():
            expected = [100 * report[label][key] for key in ("precision", "recall", "f1-score")]
            assert list(row.values()) == pytest.approx([*expected, report[label]["support"]])


def test_nothing_to_measure():
    refused("as many sets .*, and at least one. Received: predictions=0", LabelSetCounts.of, [], [])


def test_thresholds_have_the_best_f1_of_all():
    probabilities = np.round(RANDOM.random((31, 5)), 1)  # with many that are equal
    correct = RANDOM.random((31, 5)) < 0.3
    correct[:, 4] = False
    found = best_thresholds(probabilities, correct)
    assert found[4] == 0.5
    for column in range(4):
        every = [
            judge.f1_score(correct[:, column], probabilities[:, column] >= threshold)
            for threshold in np.linspace(0.01, 0.99, 99)
        ]
        mine = judge.f1_score(correct[:, column], probabilities[:, column] >= found[column])
        assert mine == pytest.approx(max(every))

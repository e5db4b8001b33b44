"""Several labels a text: probabilities by hand, thresholds, folders, exports."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn import load
from keras_attn.models import SequenceClassifier, TransformerEncoder
from keras_attn.tasks import ClassificationTask, MultiLabelClassificationTask
from keras_attn.tokenizers import CharacterTokenizer
from tests.export.toy import verified
from tests.layers.judges import spread_weights
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
LABELS = ["good", "long", "rude"]
TEXTS = ["cab", "abba", "a", "bbbbacc", "cc"]


def made(labels=LABELS, outputs=3, **options):
    model = spread_weights(SequenceClassifier(TransformerEncoder(7, **SIZES), outputs))
    return MultiLabelClassificationTask(model, CharacterTokenizer("abc"), labels, 9, **options)


def logits(task):
    rows = [task.backbone({"token_ids": task.input_ids(tf.constant([text]))}) for text in TEXTS]
    return np.concatenate(rows)


def test_labels_are_those_from_their_thresholds_on():
    task = made()
    expected = 1 / (1 + np.exp(-logits(task)))
    np.testing.assert_allclose(task.probabilities(TEXTS), expected, atol=1e-5)
    task.thresholds = np.median(expected[:4], axis=0).tolist()  # between two of them
    for found, row in zip(task.predict(TEXTS), expected, strict=True):
        ranked = [LABELS[place] for place in np.argsort(-row)]
        limits = dict(zip(LABELS, zip(row, task.thresholds, strict=True), strict=True))
        assert found == [name for name in ranked if limits[name][0] >= limits[name][1]]
    assert 0 < sum(map(len, task.predict(TEXTS))) < 15
    ((best, second),) = task.predict_n_best(TEXTS[:1], 2)
    assert np.exp(best.log_probability) == pytest.approx(expected[0].max(), rel=1e-4)
    assert second.log_probability <= best.log_probability


@pytest.mark.slow
def test_it_is_saved_and_exported(tmp_path):
    task = made(thresholds=[0.4, 0.5, 0.61])
    task.save(tmp_path / "task")
    folder = task.export(tmp_path / "exported")
    verified(folder)
    for again in (load(tmp_path / "task"), load(folder)):
        assert again.predict(TEXTS) == task.predict(TEXTS)
        for found, expected in zip(again.label_sets(TEXTS), task.label_sets(TEXTS), strict=True):
            assert found.probabilities == pytest.approx(expected.probabilities, abs=1e-5)
        (found,), (expected,) = (one.predict_n_best(["cab"], 2) for one in (again, task))
        assert [one.text for one in found] == [one.text for one in expected]
    assert load(tmp_path / "task").thresholds == task.thresholds
    refused("must not exceed the number of labels", load(folder).predict_n_best, TEXTS, 4)


def test_one_label_is_enough():
    assert made(["rude"], 1).predict(["a"]) in ([[]], [["rude"]])
    refused("At least one label is needed. Received: labels=", made, [], 1)


@pytest.mark.parametrize("thresholds", [[0.5], [0.5, 0.5, 1.0], [0.0, 0.5, 0.5]])
def test_thresholds_that_cannot_be(thresholds):
    refused(
        "`thresholds` must be a number between 0 and 1 for each label. Received: thresholds=",
        made,
        thresholds=thresholds,
    )


def test_a_task_of_one_label_a_text_is_another_kind(tmp_path):
    made().save(tmp_path / "task")
    assert type(ClassificationTask.load(tmp_path / "task")) is MultiLabelClassificationTask

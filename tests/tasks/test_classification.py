"""Labels of texts: probabilities of the model itself, saved, exported, told what is wrong."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import export_saved_model
from keras_attn.models import SequenceClassifier, TransformerEncoder
from keras_attn.tasks import ClassificationTask, Task, open_exported
from keras_attn.tasks.texts import beginning
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import assert_alike, reloaded

pytestmark = pytest.mark.tensorflow

LABELS = ["very bad", "fair", "good"]
TEXTS = ["ab", "", "cabacab", "d", "bbbb", "acd"]


def make_task(labels=LABELS, max_length=11, columns=3, truncate=False, **model):
    tokenizer = train_tokenizer("characters", ["aaaabbbccd"])
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11} | model
    encoder = TransformerEncoder(tokenizer.vocabulary_size, **sizes)
    backbone = spread_weights(SequenceClassifier(encoder, columns), 3)
    return ClassificationTask(backbone, tokenizer, labels, max_length, truncate=truncate)


@pytest.fixture(scope="module")
def task():
    return make_task()


def logits_of(task, text):
    ids = [*task.tokenizer.tokenize(tf.constant([text])).to_list()[0], task.tokenizer.end_id]
    return np.asarray(task.backbone({"token_ids": np.array([ids], "int32")}))[0]


def test_probabilities_are_those_of_each_text_alone(task):
    logits = np.stack([logits_of(task, text) for text in TEXTS])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(task.probabilities(TEXTS), expected, rtol=1e-4)
    chosen = [LABELS[place] for place in logits.argmax(axis=1)]
    assert len(set(chosen)) > 1
    assert task.predict(TEXTS) == chosen


def test_labels_come_in_order_with_their_log_probabilities(task):
    for text, hypotheses in zip(TEXTS, task.predict_n_best(TEXTS, 3), strict=True):
        logits = logits_of(task, text)
        order = np.argsort(-logits)
        assert [hypothesis.text for hypothesis in hypotheses] == [LABELS[place] for place in order]
        expected = logits[order] - np.log(np.exp(logits).sum())
        np.testing.assert_allclose([h.log_probability for h in hypotheses], expected, rtol=1e-4)


def test_loss_of_classes_counted_from_one(task):
    logits = tf.math.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])
    loss, nll, count, correct = task.loss(tf.constant([1, 0, 1]), logits)
    assert float(loss) == pytest.approx(-math.log(0.5) - math.log(0.3))
    assert (float(nll), float(count), float(correct)) == (float(loss), 2, 1)
    weighted = make_task()
    weighted.class_weights = [2.0, 3.0, 0.5]
    found = weighted.loss(tf.constant([1, 0, 2]), logits)
    assert float(found[0]) == pytest.approx(-2 * math.log(0.5) - 3 * math.log(0.3))
    assert float(found[1]) == pytest.approx(-math.log(0.5) - math.log(0.3))


def test_saved_and_exported(task, tmp_path):
    loaded = reloaded(task, tmp_path / "task")
    np.testing.assert_array_equal(loaded.probabilities(TEXTS), task.probabilities(TEXTS))
    folder = export_saved_model(task, tmp_path / "exported", n_best=2)
    model = tf.saved_model.load(str(folder))
    found = model.signatures["serving_default"](text=tf.constant(TEXTS))
    assert [label.decode() for label in found["label"].numpy()] == task.predict(TEXTS)
    probabilities = task.probabilities(TEXTS)
    np.testing.assert_allclose(found["probability"], probabilities.max(axis=1), rtol=1e-4)
    exported = open_exported(folder)
    assert exported.predict(TEXTS) == task.predict(TEXTS)
    assert_alike(exported.predict_n_best(TEXTS, 2), task.predict_n_best(TEXTS, 2), rtol=1e-4)
    with pytest.raises(UserError, match="`n_best` of the export. Received: n_best=3, exported=2"):
        exported.predict_n_best(TEXTS, 3)
    several = model.signatures["n_best"](text=tf.constant(TEXTS))
    assert several["label"].shape == (6, 2)
    np.testing.assert_allclose(
        several["probability"], -np.sort(-probabilities, axis=1)[:, :2], rtol=1e-4
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["a"], "columns": 1}, "At least two labels are needed. Received: labels=.'a'."),
        ({"labels": ["a", "b", "a"]}, "No label may be repeated. Received: labels=.'a', 'b', 'a'."),
        ({"labels": ["a", "b"]}, "must equal the number of logits. Received: labels=2, logits=3"),
        ({"learned_positions": 7}, "must not exceed .*Received: positions=7, max_length=11"),
        ({"max_length": 0}, "`max_length` must be a positive integer. Received: max_length=0"),
    ],
)
def test_mistakes_in_making_it(arguments, message):
    refused(message, make_task, **arguments)


def test_mistakes_in_using_it(task):
    refused("at most 10 tokens. Received: 12 tokens in 'aaaaaaaaaaaa'", task.predict, ["a" * 12])
    refused("must not exceed the number of labels. .*n_best=4, lab", task.predict_n_best, ["a"], 4)
    refused("has no beam search. Received: beams=2", task.predict_n_best, ["a"], 1, beams=2)


def test_a_start_before_each_text(task, tmp_path):
    """As BERT knows texts; saved, served, and told where there is no room for it."""
    started = ClassificationTask(task.backbone, task.tokenizer, LABELS, 11, True, truncate=False)
    ids = started.input_ids(tf.constant(["ab", "a"])).numpy().tolist()
    assert ids == [[1, 4, 5, 2], [1, 4, 2, 0]]
    logits = np.asarray(task.backbone({"token_ids": np.array([[1, 4, 5, 2]], "int32")}))[0]
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(started.probabilities(["ab"])[0], expected, rtol=1e-4)
    loaded = reloaded(started, tmp_path / "task")
    np.testing.assert_array_equal(loaded.probabilities(TEXTS), started.probabilities(TEXTS))
    refused("at most 9 tokens. Received: 10 tokens in 'aaaaaaaaaa'", started.predict, ["a" * 10])
    assert max(map(len, started.example_texts())) <= 9


@pytest.mark.parametrize("with_start", [False, True])
def test_long_texts_are_truncated(task, with_start, tmp_path):
    made = ClassificationTask(task.backbone, task.tokenizer, LABELS, 11, with_start)
    long, beginning = "abcdabcdabcdabcd", "abcdabcdabcdabcd"[: 10 - with_start]
    np.testing.assert_array_equal(made.probabilities([long]), made.probabilities([beginning]))
    assert not np.array_equal(made.probabilities([long]), made.probabilities([beginning[:-1]]))
    loaded = reloaded(made, tmp_path / "task")
    exported = open_exported(export_saved_model(made, tmp_path / "exported"))
    for other in (loaded, exported):
        assert_alike(other.predict_n_best([long], 1), made.predict_n_best([beginning], 1))
        assert [one.count_truncated([long, beginning, long]) for one in (made, other)] == [2, 2]
    assert task.count_truncated([long]) == 0  # it refuses them


def test_of_a_text_of_many_words_the_beginning_is_read(task):
    made = ClassificationTask(task.backbone, task.tokenizer, LABELS, 11)
    words = "ab cd b a " * 50
    assert len(beginning(words, 11)) < len(words)
    np.testing.assert_array_equal(made.probabilities([words]), made.probabilities([words[:11]]))
    assert beginning("a" * 5000, 11) == "a" * 5000


def test_a_folder_from_before_there_were_starts(task, tmp_path):
    task.save(tmp_path / "task")
    path = tmp_path / "task" / "task.json"
    content = json.loads(path.read_text())
    assert content.pop("with_start") is False
    assert content.pop("truncate") is False
    path.write_text(json.dumps(content))
    np.testing.assert_array_equal(
        Task.load(tmp_path / "task").probabilities(TEXTS), task.probabilities(TEXTS)
    )

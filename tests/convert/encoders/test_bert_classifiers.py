"""BERT's classifiers of texts and of tokens, judged by what transformers gave."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.convert import convert_huggingface
from keras_attn.tasks import (
    ClassificationTask,
    EmbeddingTask,
    MultiLabelClassificationTask,
    RegressionTask,
    TokenClassificationTask,
)
from tests.convert.made import (
    GOLDEN,
    as_sentence_transformer,
    change_tensors,
    check_mistake,
    config,
    converted,
    copy_of,
    loaded,
    without,
)
from tests.harness import arrays_of

pytestmark = pytest.mark.tensorflow

OF_TOKENS, OF_TEXTS = GOLDEN / "bert_of_tokens", GOLDEN / "bert_of_texts"
TEXTS = ["The cats sat on the mat .", "a", "ÜBER, a cat! Cats dog", "日本 fox cs [MASK] a"]
"""What `make_bert_classifiers_golden.py` has classified."""


def with_golden(folder):
    return converted(folder), arrays_of(f"{folder}_outputs.npz")


@pytest.fixture
def of_tokens(tmp_path):
    return copy_of(OF_TOKENS, tmp_path / "checkpoint")


@pytest.fixture
def of_texts(tmp_path):
    return copy_of(OF_TEXTS, tmp_path / "checkpoint")


def test_logits_and_tags_of_tokens_are_those_of_transformers():
    task, golden = with_golden(OF_TOKENS)
    assert type(task) is TokenClassificationTask
    assert (task.labels[1], task.max_length) == ("I-PER", 17)
    assert (task.backbone.dropout, task.backbone.encoder.pooler) == (0.3, None)
    real = golden["token_ids"] != 0
    logits = np.asarray(task.backbone({"token_ids": golden["token_ids"]}))
    assert logits.shape == golden["logits"].shape == (3, 11, 5)
    np.testing.assert_allclose(logits[real], golden["logits"][real], atol=1e-4)
    ids = task.input_ids(tf.constant(TEXTS))
    np.testing.assert_array_equal(ids, golden["text_ids"])
    real = golden["text_ids"] != 0
    logits = np.asarray(task.backbone({"token_ids": ids}))
    np.testing.assert_allclose(logits[real], golden["text_logits"][real], atol=1e-4)
    assert len({tag for tags in golden["tags"] for tag in tags.split()}) > 2
    assert task.predict(TEXTS) == golden["tags"].tolist()


def test_logits_and_labels_of_texts_are_those_of_transformers():
    task, golden = with_golden(OF_TEXTS)
    assert type(task) is ClassificationTask
    assert (task.labels, task.max_length) == (["very bad", "fair", "good"], 17)
    assert (task.backbone.pooling, task.backbone.dropout) == ("pooler", 0.1)
    logits = np.asarray(task.backbone({"token_ids": golden["token_ids"]}))
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-4)
    np.testing.assert_array_equal(task.input_ids(tf.constant(TEXTS)), golden["text_ids"])
    expected = np.exp(golden["text_logits"])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(task.probabilities(TEXTS), expected, atol=1e-4)
    assert len(set(golden["labels"])) > 1
    assert task.predict(TEXTS) == golden["labels"].tolist()


def test_heads_of_several_labels_and_of_numbers(of_texts):
    golden = arrays_of(f"{OF_TEXTS}_outputs.npz")["text_logits"]
    config(problem_type="multi_label_classification")(of_texts)
    task = converted(of_texts)
    assert type(task) is MultiLabelClassificationTask
    np.testing.assert_allclose(task.probabilities(TEXTS), 1 / (1 + np.exp(-golden)), atol=1e-4)
    config(problem_type="regression")(of_texts)
    task = converted(of_texts)
    assert (type(task), task.names) == (RegressionTask, ["very bad", "fair", "good"])
    np.testing.assert_allclose(task.predict(TEXTS), golden, atol=1e-4)


def test_a_single_label_is_a_number_if_the_configuration_says_so(of_texts):
    config(id2label={"0": "score"}, problem_type="regression")(of_texts)
    change_tensors(
        of_texts,
        lambda tensors: (
            tensors | {name: tensors[name][:1] for name in ("classifier.weight", "classifier.bias")}
        ),
    )
    task, golden = converted(of_texts), arrays_of(f"{OF_TEXTS}_outputs.npz")["text_logits"]
    assert type(task) is RegressionTask
    np.testing.assert_allclose(task.predict(TEXTS), golden[:, 0], atol=1e-4)


@pytest.mark.slow
def test_a_saved_classifier_of_the_pooler_is_the_same(tmp_path):
    task = converted(OF_TEXTS)
    again = loaded(task, tmp_path)
    np.testing.assert_array_equal(again.probabilities(TEXTS), task.probabilities(TEXTS))


def test_labels_without_names(of_tokens):
    config(id2label=..., num_labels=5)(of_tokens)
    assert convert_huggingface(of_tokens).task.labels == [f"LABEL_{number}" for number in range(5)]


def test_another_architecture_leaves_the_classifier_out(of_texts):
    config(architectures=["BertModel"])(of_texts)
    task, notes = convert_huggingface(of_texts)
    assert type(task) is EmbeddingTask
    assert notes == ("Not used: the classifier (classifier.*).",)


def test_sentence_transformers_gives_vectors(of_texts):
    as_sentence_transformer(of_texts, "Transformer", "Pooling")
    assert type(convert_huggingface(of_texts).task) is EmbeddingTask


def test_a_pooler_under_a_classifier_of_tokens_is_kept(of_tokens):
    more = {"bert.pooler.dense.weight": (14, 14), "bert.pooler.dense.bias": (14,)}
    more = {name: np.ones(shape, "float32") for name, shape in more.items()}
    change_tensors(of_tokens, lambda tensors: tensors | more)
    task, notes = convert_huggingface(of_tokens)
    assert notes == ()
    assert (np.asarray(task.backbone.encoder.pooler.kernel) == 1).all()


NAMES = {"0": "a", "1": "b", "2": "c", "3": "d", "5": "e"}
MISTAKES = {
    "an unknown head": (
        OF_TEXTS,
        config(problem_type="ranking"),
        "config.json: .*problem_type.*'ranking'",
    ),
    "another number of labels": (OF_TEXTS, config(id2label={"0": "a", "1": "b"}), "classifier.we"),
    "a gap": (OF_TOKENS, config(id2label=NAMES), "config.json: `id2label` must have the numbers"),
    "no word": (
        OF_TOKENS,
        config(id2label={str(number): f"a {number}" for number in range(5)}),
        "config.json: A tag must be one word. Received: tag='a 0'",
    ),
    "no pooler": (OF_TEXTS, without("bert.pooler.dense.weight"), "missing: pooler.dense.weight"),
    "no bias": (OF_TOKENS, without("classifier.bias"), "missing: classifier.bias"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_take_one_line(name, tmp_path):
    golden, spoil, message = MISTAKES[name]
    check_mistake(spoil, message, copy_of(golden, tmp_path / "checkpoint"))

"""Longformer with its tokenizer, judged by the numbers that transformers gave.

Its models without tokenizers are in test_encoders.py.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.convert import convert_huggingface
from keras_attn.tasks import ClassificationTask, EmbeddingTask, MultiLabelClassificationTask
from keras_attn.tokenizers import PipelineTokenizer
from tests.convert.made import (
    GOLDEN,
    as_sentence_transformer,
    change_json,
    config,
    converted,
    copy_of,
    loaded,
    mistakes,
    removed,
    rows_of,
    shrink_embedding,
    tensors,
    tokenizer_config,
    write_json,
)
from tests.harness import arrays_of

pytestmark = pytest.mark.tensorflow

CHECKPOINT = GOLDEN / "longformer"
CLASSIFIER = GOLDEN / "longformer_classifier"


def theirs(ids):
    """The ids of transformers, where 1 is padding and 0 the start."""
    return np.where(ids < 2, 1 - ids, ids)


def test_ids_are_those_of_transformers(task, golden):
    texts = golden["texts"].tolist()
    assert type(task) is EmbeddingTask
    assert type(task.tokenizer) is PipelineTokenizer
    assert task.max_length == 41
    for text, expected in zip(texts, rows_of(golden["text_ids"]), strict=True):
        ids = np.asarray(task.tokenizer.tokenize(tf.constant([text])).to_list()[0], int)
        found = [0, *theirs(ids[:39]), 2]
        assert found == expected.tolist()
    assert max(map(len, rows_of(golden["text_ids"]))) == 41  # of texts that were cut


def test_vectors_are_those_of_transformers(task, golden):
    expected = golden["normalized"]
    np.testing.assert_allclose(task.predict(golden["texts"].tolist()), expected, atol=1e-5)
    assert np.abs(expected - expected[:1]).max(1)[1:].min() > 1e-3


def test_classes_are_those_of_transformers(tmp_path):
    golden = arrays_of(f"{CLASSIFIER}_outputs.npz")
    texts = golden["texts"].tolist()
    task = loaded(converted(CLASSIFIER), tmp_path)
    assert type(task) is ClassificationTask
    assert (task.labels, task.max_length) == (["bad", "fair", "good"], 41)
    expected = np.exp(golden["logits"])
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.ptp(golden["logits"], axis=0).max() > 0.1
    # Longer texts were cut there.
    short = [n for n, text in enumerate(texts) if len(text) < 30]
    found = task.probabilities([texts[n] for n in short])
    np.testing.assert_allclose(found, expected[short], atol=1e-5)


def test_several_labels(tmp_path):
    folder = copy_of(CLASSIFIER, tmp_path / "checkpoint")
    config(problem_type="multi_label_classification")(folder)
    assert type(converted(folder)) is MultiLabelClassificationTask


def test_a_classifier_without_its_architecture(tmp_path):
    folder = copy_of(CLASSIFIER, tmp_path / "checkpoint")
    config(architectures=["LongformerModel"])(folder)
    task, notes = convert_huggingface(folder)
    assert type(task) is EmbeddingTask
    assert notes == ("Not used: the classifier (classifier.*).",)


def test_older_files_of_the_tokenizer(folder, task, golden):
    """As `LongformerTokenizer` wrote them, without a tokenizer.json."""
    tokenizer = task.tokenizer
    names = theirs(np.arange(tokenizer.vocabulary_size))
    ids = {token: int(n) for token, n in zip(tokenizer.vocabulary, names, strict=True)}
    write_json(folder / "vocab.json", ids)
    merges = json.loads(tokenizer.assets()["pipeline.json"])["model"]["merges"]
    (folder / "merges.txt").write_text("".join(f"{a} {b}\n" for a, b in merges))
    removed("tokenizer.json")(folder)
    tokenizer_config(tokenizer_class="LongformerTokenizer", mask_token={"content": "<mask>"})(
        folder
    )
    again = converted(folder)
    assert again.tokenizer.vocabulary == tokenizer.vocabulary
    texts = golden["texts"].tolist()
    np.testing.assert_array_equal(again.predict(texts), task.predict(texts))


def test_sentence_transformers(folder):
    as_sentence_transformer(folder, "Transformer", "Pooling", pooling={"pooling_mode_cls_token": 1})
    task = convert_huggingface(folder).task
    assert (task.pooling, task.normalize) == ("first", False)


def processor(**values):
    return lambda folder: change_json(folder / "tokenizer.json", post_processor=values)


MISTAKES = {
    "start": (tokenizer_config(cls_token="[CLS]"), "`cls_token` must be a token of the vocab"),
    "frame": (
        processor(type="RobertaProcessing", cls=["<s>", 0], sep=["<end>", 3]),
        "`post_processor` must add tokens. Received: token='<end>'",
    ),
    "other processor": (processor(type="ByteLevel"), "`post_processor` must produce a start, a"),
    "no tokenizer": (removed("tokenizer.json"), r"checkpoint: no tokenizer file \(tokenizer.json"),
    "small embedding": (shrink_embedding, "the vocabulary is larger than the embedding"),
    "padding": (config(pad_token_id=3), "`pad_token_id`, after which positions are counted, must"),
    "global": (
        tensors(lambda found: {k: t for k, t in found.items() if "key_global" not in k}),
        "missing: encoder.layer.0.attention.self.key_global.bias",
    ),
}

test_mistakes_take_one_line = mistakes(MISTAKES)


def test_questions_that_are_global_are_not_read_as_others(tmp_path):
    """transformers makes every token of the question a global position."""
    folder = copy_of(CHECKPOINT, tmp_path / "checkpoint")
    config(architectures=["LongformerForQuestionAnswering"])(folder)
    head = {
        "qa_outputs.weight": np.ones((2, 12), "float32"),
        "qa_outputs.bias": np.ones(2, "float32"),
    }
    tensors(lambda found: found | head)(folder)
    found = convert_huggingface(folder)
    assert type(found.task) is EmbeddingTask
    assert [note for note in found.notes if "the head of question answering" in note]

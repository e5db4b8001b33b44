"""BERT's masked language model, judged by the numbers that transformers gave."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.convert import convert_huggingface
from keras_attn.tasks import EmbeddingTask, MaskedLMTask
from tests.convert.made import (
    GOLDEN,
    as_sentence_transformer,
    change_tensors,
    config,
    loaded,
    mistakes,
    tensors,
    without,
)

pytestmark = pytest.mark.tensorflow

CHECKPOINT = GOLDEN / "masked_bert"
TEXTS = ["The [MASK] sat on the mat.", "[MASK] [MASK] dog, [MASK]!", "a cat"]
"""What `make_masked_bert_golden.py` has filled."""

MASK = 15
SPECIAL = [0, 6, 7, 8, MASK]
EMBEDDING = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"


def check_logits(task, golden):
    real = golden["token_ids"] != 0
    assert real.sum(1).tolist() == [11, 6, 1]
    logits = np.asarray(task.backbone({"token_ids": golden["token_ids"]}))
    assert logits.shape == golden["logits"].shape == (3, 11, 27)
    np.testing.assert_allclose(logits[real], golden["logits"][real], atol=1e-4)


def test_logits_are_those_of_transformers(task, golden):
    assert type(task) is MaskedLMTask
    assert (task.max_length, task.backbone.activation, task.backbone.epsilon) == (15, "silu", 1e-2)
    check_logits(task, golden)
    positions = np.array([[4, 0], [5, 2], [0, 0]], "int32")
    inputs = {"token_ids": golden["token_ids"], "positions": positions}
    expected = np.take_along_axis(golden["logits"], positions[..., None], 1)
    np.testing.assert_allclose(np.asarray(task.backbone(inputs)), expected, atol=1e-4)


def test_gaps_are_filled_as_transformers_would(task, golden):
    ids = golden["text_ids"]
    np.testing.assert_array_equal(task.input_ids(tf.constant(TEXTS)), ids)
    logits = golden["text_logits"].astype("float64")
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    scores[..., SPECIAL] = -np.inf
    scores[..., 22:] = -np.inf  # rows of the embedding that have no token
    for row, (hypothesis,) in enumerate(task.predict_n_best(TEXTS, 1)):
        best = scores[row, ids[row] == MASK].max(-1).sum()
        assert hypothesis.log_probability == pytest.approx(best, abs=1e-4)
        tokens = task.tokenizer.tokenize(tf.constant([hypothesis.text])).to_list()[0]
        assert MASK not in tokens
    assert task.predict(TEXTS)[2] == "a cat"


def test_a_saved_task_is_the_same(task, tmp_path):
    again = loaded(task, tmp_path)
    assert again.predict_n_best(TEXTS, 2) == task.predict_n_best(TEXTS, 2)


def of_pretraining(tensors):
    """With a pooler, which is kept, and a head for the order of sentences, which is not."""
    more = {"bert.pooler.dense.weight": (14, 14), "bert.pooler.dense.bias": (14,)}
    more |= {"cls.seq_relationship.weight": (2, 14), "cls.seq_relationship.bias": (2,)}
    return tensors | {name: np.ones(shape, "float32") for name, shape in more.items()}


def test_a_checkpoint_of_both_heads_of_pretraining(folder, golden):
    config(architectures=["BertForPreTraining"])(folder)
    change_tensors(folder, of_pretraining)
    task, notes = convert_huggingface(folder)
    assert notes == ("Not used: the head of next-sentence prediction (cls.seq_relationship.*).",)
    assert (np.asarray(task.backbone.encoder.pooler.kernel) == 1).all()
    check_logits(task, golden)


def test_what_is_tied_may_be_there_twice(folder, golden):
    again = {DECODER: EMBEDDING, "cls.predictions.decoder.bias": "cls.predictions.bias"}
    tensors(lambda t: t | {name: t[first] for name, first in again.items()})(folder)
    task, notes = convert_huggingface(folder)
    assert notes == ()
    check_logits(task, golden)


def test_without_the_architecture_the_head_is_left_out(folder):
    config(architectures=["BertModel"])(folder)
    task, notes = convert_huggingface(folder)
    assert type(task) is EmbeddingTask
    assert notes == ("Not used: the head of masked language modeling (cls.predictions.*).",)


def test_sentence_transformers_gives_vectors(folder):
    as_sentence_transformer(folder, "Transformer", "Pooling", "Normalize")
    assert type(convert_huggingface(folder).task) is EmbeddingTask


def other(name, than):
    return tensors(lambda tensors: tensors | {name: tensors[than] + 1})


MISTAKES = {
    "not tied": (config(tie_word_embeddings=False), "config.json: `tie_word_embeddings` must be T"),
    "another output": (
        other(DECODER, than=EMBEDDING),
        f"{DECODER} must be the same as {EMBEDDING}",
    ),
    "another bias": (
        other("cls.predictions.decoder.bias", than="cls.predictions.bias"),
        "cls.predictions.decoder.bias must be the same as cls.predictions.bias",
    ),
    "no head": (
        without("cls.predictions.bias", "cls.predictions.transform.dense.weight"),
        "missing: cls.predictions.bias, cls.predictions.transform.dense.weight.$",
    ),
    "one more": (
        other("cls.predictions.more", than=EMBEDDING),
        "left over: cls.predictions.more.$",
    ),
}

test_mistakes_take_one_line = mistakes(MISTAKES)

"""BERT's heads on pairs of texts, judged by what transformers gave."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.convert import convert_huggingface
from keras_attn.tasks import QuestionAnsweringTask, RankTask, open_exported
from tests.convert.made import GOLDEN, change_json, config, converted, copy_of
from tests.harness import arrays_of
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


def outputs():
    golden = arrays_of(GOLDEN / "pair_heads_outputs.npz")
    return golden["pairs"].tolist(), golden


def test_classifier_of_pairs():
    pairs, golden = outputs()
    task = converted(GOLDEN / "bert_of_texts")
    task.read_pairs(True)
    ids = task.input_ids(tf.constant(pairs))
    np.testing.assert_array_equal(ids, golden["token_ids"])
    inputs = task.model_inputs(ids)
    np.testing.assert_array_equal(inputs["segment_ids"], golden["segment_ids"])
    logits = np.asarray(task.backbone(inputs))
    np.testing.assert_allclose(logits, golden["classifier"], atol=1e-4)
    others = np.asarray(task.backbone({"token_ids": ids}))  # all of segment 0
    assert np.abs(others - golden["classifier"]).max() > 1e-2


def test_reranker(tmp_path):
    pairs, golden = outputs()
    task = converted(GOLDEN / "bert_reranker")
    assert (type(task), task.activation, task.segments) == (RankTask, "sigmoid", True)
    expected = golden["reranker"][:, 0]
    np.testing.assert_allclose(task.scores(pairs), 1 / (1 + np.exp(-expected)), atol=1e-4)
    passages = [pair.split("\t")[1] for pair in pairs]
    logits = {one.place: one.score for one in task.rank(pairs[0].split("\t")[0], passages)}
    assert logits[0] == pytest.approx(1 / (1 + np.exp(-expected[0])), abs=1e-4)
    exported = open_exported(task.export(tmp_path / "exported"))
    np.testing.assert_allclose(exported.scores(pairs), task.scores(pairs), atol=1e-5)


SEGMENTS = {
    "as given": ({}, True),
    "of a general class": ({"tokenizer_class": "TokenizersBackend"}, False),
    "of a general class of before": ({"tokenizer_class": "PreTrainedTokenizerFast"}, True),
    "named": (
        {
            "tokenizer_class": "TokenizersBackend",
            "model_input_names": ["input_ids", "token_type_ids"],
        },
        True,
    ),
    "not named": ({"model_input_names": ["input_ids", "attention_mask"]}, False),
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_segments_are_those_that_transformers_gives(name, tmp_path):
    """As its classes of tokenizers say what a model is given."""
    keys, expected = SEGMENTS[name]
    for golden in ("bert_reranker", "bert_of_questions", "bert_of_texts"):
        folder = copy_of(GOLDEN / golden, tmp_path / golden)
        change_json(folder / "tokenizer_config.json", **keys)
        conversion = convert_huggingface(folder)
        if golden == "bert_of_texts":
            said = any("segments=False" in note for note in conversion.notes)
            assert said is not expected
        else:
            assert conversion.task.segments is expected


ACTIVATIONS = {
    "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"},
    "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
}


@pytest.mark.parametrize("key", ACTIVATIONS)
def test_activations_as_sentence_transformers_saves_them(key, tmp_path):
    folder = copy_of(GOLDEN / "bert_reranker", tmp_path / "checkpoint")
    config(**{key: ACTIVATIONS[key]})(folder)
    pairs, golden = outputs()
    scores = converted(folder).scores(pairs)
    np.testing.assert_allclose(scores, golden["reranker"][:, 0], atol=1e-4)
    config(**{key: {"activation_fn": "torch.nn.Tanh"} if "_t" in key else "torch.Tanh"})(folder)
    message = "`activation_fn` must be one of 'sigmoid', 'identity'. Received: .*tanh"
    refused(message, convert_huggingface, folder)


def test_question_answering():
    pairs, golden = outputs()
    task = converted(GOLDEN / "bert_of_questions")
    assert (type(task), task.max_length, task.segments) == (QuestionAnsweringTask, 17, True)
    ids = task.input_ids(tf.constant(pairs))
    np.testing.assert_array_equal(ids, golden["token_ids"])
    logits = np.asarray(task.backbone(task.model_inputs(ids)))
    real = golden["token_ids"] != 0
    for side, name in enumerate(("starts", "ends")):
        np.testing.assert_allclose(logits[:, :, side][real], golden[name][real], atol=1e-4)
    # The best part of the context, between the end of the question and the last one.
    for row, answer in enumerate(task.answers(pairs)):
        first = int(np.argmax(golden["segment_ids"][row] == 1))
        last = int(real[row].sum()) - 2
        scores = {
            (i, j): golden["starts"][row, i] + golden["ends"][row, j]
            for i in range(first, last + 1)
            for j in range(i, last + 1)
        }
        best = max(scores, key=scores.get)
        total = sum(np.exp(score - scores[best]) for score in scores.values())
        assert answer.score == pytest.approx(1 / total, rel=1e-3)
        tokens = task.tokenizer.tokens_of(ids)[row, best[0] : best[1] + 1].numpy()
        spelled = task.tokenizer.tokenize([answer.text]).to_list()[0]
        if b"[UNK]" not in tokens:
            assert spelled == ids[row, best[0] : best[1] + 1].numpy().tolist()

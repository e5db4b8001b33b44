"""Recurrent and convolutional models as saved tasks and as SavedModels."""

import numpy as np
import pytest

from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.models import GNMT, ConvSeq2Seq, RecurrentSeq2Seq
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import train_tokenizer
from tests.export.served_attention import check_served_attention
from tests.export.toy import verified
from tests.layers.judges import spread_weights
from tests.tasks.made import assert_answers

TEXTS = ["face", "a", "deadbeef", "", "xyz"]
FAMILIES = {
    "fed": (RecurrentSeq2Seq, {"num_layers": 2, "attention": "luong", "dropout": 0.1}),
    "GNMT": (GNMT, {"num_layers": 3}),
    "convolutions": (ConvSeq2Seq, {"num_layers": 2, "learned_positions": 11}),
}
REST = ("GNMT", "convolutions")


@pytest.fixture(
    scope="module", params=["fed", *(pytest.param(x, marks=pytest.mark.slow) for x in REST)]
)
def task(request):
    source = train_tokenizer("characters", ["abcdefg"])
    target = train_tokenizer("symbols", ["AA B K D EH"])
    family, arguments = FAMILIES[request.param]
    model = family(source.vocabulary_size, target.vocabulary_size, hidden_dim=6, **arguments)
    penalty = 0.3 if hasattr(model, "supports_coverage") else 0.0
    decoding = DecodingSettings(
        beams=3, max_source_length=11, max_length=5, coverage_penalty=penalty
    )
    return Seq2SeqTask(spread_weights(model), source, target, decoding)


def test_a_saved_task_predicts_the_same(task, tmp_path):
    task.save(tmp_path / "task")
    loaded = Seq2SeqTask.load(tmp_path / "task")
    assert type(loaded.backbone) is type(task.backbone)
    for ours, theirs in zip(task.backbone.weights, loaded.backbone.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=ours.path)
    assert loaded.predict_n_best(TEXTS, 2) == task.predict_n_best(TEXTS, 2)


@pytest.mark.slow
def test_an_exported_model_predicts_the_same(task, tmp_path):
    folder = export_saved_model(task, tmp_path / "model", n_best=2, examples=["bad", "cabbage"])
    verified(folder)
    check_served_attention(task, folder)
    with CppSavedModel(folder) as model:
        outputs = model.run("n_best", {"text": TEXTS})
    assert_answers(outputs, task.predict_n_best(TEXTS, 2), rtol=1e-4)


def test_a_coverage_penalty_lowers_scores(task):
    """Not those of one token, at which every step must look."""
    change = []
    for row in task.predict_n_best(TEXTS, 2):
        for found in row:
            length = len(found.text.split()) + 1  # the end token
            change.append(found.score - found.log_probability / ((5 + length) / 6) ** 0.6)
    assert max(change) == pytest.approx(0, abs=1e-5)
    assert (min(change) < -1e-2) == (task.decoding.coverage_penalty > 0)


def test_a_score_is_that_of_the_search(task):
    """Whole targets and steps, through texts."""
    for text, (best, _) in zip(TEXTS, task.predict_n_best(TEXTS, 2), strict=True):
        assert task.score([text], [best.text]) == pytest.approx([best.log_probability], abs=1e-4)

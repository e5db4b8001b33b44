import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import CppSavedModel
from tests.export.toy import verified
from tests.tasks.made import assert_answers, make_task


@pytest.fixture(scope="module")
def task():
    return make_task()


@pytest.fixture
def exported(tiny_export):
    return tiny_export


def test_an_exported_transformer_is_verified(exported):
    report = verified(exported)
    names = (
        "attention, n_best, n_best_token_ids, score, score_token_ids, serving_default, token_ids"
    )
    assert f"7 examples of {names}" in str(report)


def test_the_cpp_runtime_predicts_what_the_task_predicts(task, exported):
    texts = ["face", "a", "deadbeef", "xyz"]
    with CppSavedModel(exported) as model:
        outputs = model.run("n_best", {"text": texts})
    assert_answers(outputs, task.predict_n_best(texts, 2), rtol=1e-4)


def test_what_is_attended_to_comes_with_its_tokens(task, exported):
    texts, targets = ["bad", "cabbage"], ["B AA D", ""]
    with CppSavedModel(exported) as model:
        outputs = model.run("attention", {"text": texts, "target": targets})
    tokens = {
        name: [[token.decode() for token in row] for row in outputs[name]]
        for name in outputs
        if outputs[name].dtype == object
    }
    source = [["b", "a", "d", "</s>", *[""] * 4], [*"cabbage", "</s>"]]
    read = [["<s>", "B", "AA", "D"], ["<s>", "", "", ""]]
    assert tokens == {
        "encoder_rows": source,
        "encoder_columns": source,
        "decoder_rows": read,
        "decoder_columns": read,
        "cross_rows": [["B", "AA", "D", "</s>"], ["</s>", "", "", ""]],
        "cross_columns": source,
    }
    assert outputs["cross"].shape == (2, 1, 2, 4, 8)
    # Each row of the first text is a distribution over its four tokens, the rest is padding.
    np.testing.assert_allclose(outputs["cross"][0].sum(axis=-1), 1, rtol=1e-5)
    assert not outputs["cross"][0, ..., 4:].any()
    assert not outputs["cross"][1, :, :, 1:].any()
    decoder = outputs["decoder"][0]
    assert not np.triu(decoder, 1).any()


def test_every_weight_is_written_once(task, exported):
    variables = tf.train.list_variables(str(exported / "variables" / "variables"))
    written = sum(int(np.prod(shape)) for name, shape in variables if name.startswith("resources/"))
    assert written == sum(int(np.prod(weight.shape)) for weight in task.backbone.variables)

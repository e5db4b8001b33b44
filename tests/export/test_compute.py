"""Models that compute in fewer bits: nearly the same answers, in TensorFlow's C++ runtime too."""

import json

import numpy as np
import pytest

from keras_attn.export import export_saved_model, saved_model
from keras_attn.export_manifest import MANIFEST
from keras_attn.models import Bert, SequenceClassifier
from keras_attn.ops import integer_product
from keras_attn.tasks import ClassificationTask, RankTask, Task, open_exported
from keras_attn.tasks.precision import in_precision
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.export.toy import ToyTask, verified
from tests.refusals import refused
from tests.tasks.made import TEXTS, make_task

SIZES = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 24}


def make_classifier():
    tokenizer = train_tokenizer("characters", ["abcdefghijklmnopqrstuvwxyz "])
    encoder = Bert(tokenizer.vocabulary_size, **SIZES, max_length=40)
    return ClassificationTask(SequenceClassifier(encoder, 3), tokenizer, ["a", "b", "c"], 40)


def log_probabilities(task, texts):
    ranked = [sorted(row) for row in task.predict_n_best(texts, 3)]  # by their labels
    return np.array([[one.log_probability for one in row] for row in ranked])


def operations(folder):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    graphs = SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs
    functions = [f for graph in graphs for f in graph.graph_def.library.function]
    return {node.op for function in functions for node in function.node_def}


@pytest.fixture(params=["int8", "bfloat16"])
def compute(request):
    if request.param == "int8":
        request.getfixturevalue("exact_integers")
    return request.param


def test_a_classifier(compute, tmp_path):
    task = make_classifier()
    texts = ["a text", "another one", "x", "a longer text with several words"]
    before = {weight.path: weight.numpy() for weight in task.backbone.weights}
    folder = export_saved_model(task, tmp_path, compute=compute, tolerance=0.1, examples=texts)
    assert verified(folder).ok
    options = {"compute": compute, "tolerance": 0.0, "examples": texts}
    refused("change by more than|changes", export_saved_model, task, tmp_path, **options)
    for weight in task.backbone.weights:  # the task stays as it was
        np.testing.assert_array_equal(weight.numpy(), before[weight.path])
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["compute"] == compute
    change = manifest["weights"]["change"]["signatures"]["serving_default"]
    assert 1e-6 < change["largest_difference"] < 0.1
    assert ("QuantizedMatMulWithBiasAndDequantize" in operations(folder)) == (compute == "int8")
    found = log_probabilities(open_exported(folder), texts)
    np.testing.assert_allclose(found, log_probabilities(task, texts), atol=0.05)
    reopened = Task.load(folder / "assets.extra" / "task")
    np.testing.assert_allclose(log_probabilities(reopened, texts), found, atol=0.02)


def test_passages_that_are_almost_equal_may_change_places(tmp_path):
    tokenizer = train_tokenizer("characters", ["abcdefghijklmnopqrstuvwxyz "])
    model = SequenceClassifier(Bert(tokenizer.vocabulary_size, **SIZES, max_length=40), 1)
    task = RankTask(model, tokenizer, 40)
    letters = np.random.default_rng(0).choice(list("abcdefgh"), (99, 12))
    texts = [f"query\t{''.join(row)}" for row in letters]
    options = {"compute": "bfloat16", "tolerance": 0.02, "examples": texts}
    folder = export_saved_model(task, tmp_path, **options)
    change = json.loads((folder / MANIFEST).read_text())["weights"]["change"]["signatures"]["rank"]
    assert change["changed"] == 0
    assert 1e-6 < change["largest_difference"] < 0.02
    passages = [text.split("\t")[1] for text in texts]
    places = [
        [one.place for one in each.rank("query", passages)]
        for each in (task, in_precision(task, "bfloat16"))
    ]
    assert places[0] != places[1]


@pytest.mark.slow
def test_a_transformer(compute, tmp_path):
    folder = export_saved_model(
        make_task(), tmp_path, compute=compute, tolerance=1.0, n_best=2, examples=TEXTS
    )
    assert verified(folder).ok


def test_a_processor_that_does_not_sum_exactly(monkeypatch, tmp_path):
    monkeypatch.setattr(saved_model, "are_sums_exact", lambda: False)
    refused("VNNI.*compute='int8'", export_saved_model, make_task(), tmp_path, compute="int8")
    assert not list(tmp_path.iterdir())


def test_a_graph_that_was_made_on_another_processor(monkeypatch, exact_integers, tmp_path):
    import tensorflow as tf

    monkeypatch.setattr(integer_product, "_are_sums_exact", lambda: tf.constant(False))
    with pytest.raises((tf.errors.InvalidArgumentError, UserError), match="VNNI"):
        export_saved_model(make_classifier(), tmp_path, compute="int8", tolerance=0.1)


def test_what_does_not_fit_together(monkeypatch, tmp_path):
    monkeypatch.setattr(saved_model, "are_sums_exact", lambda: True)
    task = make_task()
    for message, options in {
        "`compute` must be one of.*float16": {"compute": "float16"},
        "XLA does not have: leave out `jit`": {"compute": "int8", "jit": True},
        "leave out `weights`": {"compute": "int8", "weights": "float16"},
    }.items():
        refused(message, export_saved_model, task, tmp_path, n_best=2, **options)
    refused("must be a Task", export_saved_model, ToyTask(), tmp_path, compute="int8")
    smaller = in_precision(task, "int8")
    refused("quantized already", in_precision, smaller, "int8")
    assert not list(tmp_path.iterdir())

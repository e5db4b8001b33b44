"""Vectors of texts: what is pooled, what is cut, saved, exported, printed."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.cli import main
from keras_attn.export import export_saved_model, verify
from keras_attn.models import Bert, TransformerEncoder
from keras_attn.tasks import EmbeddingTask, ExportedEmbedding, open_task
from keras_attn.tokenizers import WordPieceTokenizer, train_tokenizer
from tests.backends import thinned
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import reloaded

pytestmark = pytest.mark.tensorflow

TOKENS = [
    "[PAD]",
    "the",
    "cat",
    "sat",
    "##s",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "on",
    "mat",
    ".",
]
TEXTS = ["The cats sat on the mat.", "", "cat", "dog on mat", "the cats"]
IDS = [[6, 1, 2, 4, 3, 9, 1, 10, 11, 7], [6, 7], [6, 2, 7], [6, 5, 9, 10, 7], [6, 1, 2, 4, 7]]


def make_task(model=None, **settings):
    tokenizer = WordPieceTokenizer(TOKENS, lowercase=True)
    sizes = {"num_layers": 2, "hidden_dim": 10, "num_heads": 2, "intermediate_dim": 17}
    backbone = Bert(len(TOKENS), **sizes, max_length=13, **(model or {}))
    return EmbeddingTask(spread_weights(backbone, 3), tokenizer, **({"max_length": 11} | settings))


@pytest.fixture(scope="module")
def task():
    return make_task()


def vectors_of(task, ids):
    return np.asarray(task.backbone({"token_ids": np.array([ids], "int32")}))


POOLED = {
    "mean": lambda task, vectors: vectors[0].mean(0),
    "max": lambda task, vectors: vectors[0].max(0),
    "mean_max": lambda task, vectors: np.concatenate([vectors[0].mean(0), vectors[0].max(0)]),
    "first": lambda task, vectors: vectors[0, 0],
    "pooler": lambda task, vectors: np.asarray(task.backbone.pooled(vectors))[0],
}


@pytest.mark.parametrize(
    ("pooling", "normalize"),
    thinned(
        [("mean", True), ("max", False), ("mean_max", True), ("first", True), ("pooler", False)]
    ),
)
def test_vectors_are_those_of_each_text_alone(pooling, normalize):
    task = make_task(pooling=pooling, normalize=normalize)
    expected = np.stack([POOLED[pooling](task, vectors_of(task, ids)) for ids in IDS])
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(lengths - 1).max() > 0.1
    found = task.predict(TEXTS)
    assert (found.dtype, found.shape) == (np.float32, (5, 20 if pooling == "mean_max" else 10))
    np.testing.assert_allclose(found, expected / lengths if normalize else expected, atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-2


def test_what_is_too_long_is_cut_before_its_end_token():
    task = make_task(max_length=5)
    cut = np.asarray(task.input_ids(tf.constant(TEXTS)))
    assert cut.tolist()[0] == [6, 1, 2, 4, 7]
    assert cut.tolist()[2] == [6, 2, 7, 0, 0]
    found = task.predict(TEXTS)
    np.testing.assert_allclose(found[0], found[4], atol=1e-6)
    assert task.count_truncated([TEXTS[0], TEXTS[2]]) == 1


def test_or_told():
    task = make_task(max_length=5, truncate=False)
    assert task.predict(["the cats"]).shape == (1, 10)
    refused("at most 3 tokens. Received: 8 tokens in 'The cats sat on", task.predict, TEXTS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 3 tokens"):
        task.input_ids(tf.constant(TEXTS))


@pytest.mark.slow
def test_an_export_tells_it_too(tmp_path):
    task = make_task(max_length=5, truncate=False)
    exported = open_task(export_saved_model(task, tmp_path / "exported", examples=["cat"]))
    np.testing.assert_allclose(
        exported.predict(["the cats"]), task.predict(["the cats"]), atol=1e-6
    )
    refused("^The text must have at most 3 tokens. Received: 8 tokens", exported.predict, TEXTS)
    assert exported.predict([]).shape == (0, 10)


def test_other_encoders_and_tokenizers():
    tokenizer = train_tokenizer("characters", ["aaaabbbccd"])
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
    task = EmbeddingTask(TransformerEncoder(tokenizer.vocabulary_size, **sizes), tokenizer)
    assert np.asarray(task.input_ids(tf.constant(["ab", ""]))).tolist() == [
        [1, 4, 5, 2],
        [1, 2, 0, 0],
    ]
    np.testing.assert_allclose(np.linalg.norm(task.predict(["ab", ""]), axis=1), 1, rtol=1e-5)
    assert task.predict([]).shape == (0, 8)


@pytest.mark.parametrize(
    "settings",
    [pytest.param({}, marks=pytest.mark.slow), {"pooling": "pooler", "normalize": False}],
)
def test_saved_and_exported(settings, tmp_path):
    task = make_task(**settings)
    expected = task.predict(TEXTS)
    np.testing.assert_array_equal(reloaded(task, tmp_path / "task").predict(TEXTS), expected)
    folder = export_saved_model(task, tmp_path / "exported", examples=TEXTS)
    golden = json.loads((folder / "assets.extra/golden.json").read_text())
    assert {example["signature"] for example in golden["examples"]} == {
        "attention",
        "serving_default",
        "token_ids",
    }
    exported = open_task(folder)
    assert isinstance(exported, ExportedEmbedding)
    np.testing.assert_allclose(exported.predict(TEXTS), expected, atol=1e-6)
    model = tf.saved_model.load(str(folder))
    ids = tf.ragged.constant(IDS, tf.int32).to_tensor()
    found = model.signatures["token_ids"](token_ids=ids)
    np.testing.assert_allclose(found["embedding"], expected, atol=1e-6)


@pytest.mark.slow
def test_verify_finds_other_numbers(task, tmp_path):
    folder = export_saved_model(task, tmp_path / "exported")
    path = folder / "assets.extra/golden.json"
    content = json.loads(path.read_text())
    content["examples"][0]["outputs"]["embedding"]["values"][3] += 0.01
    path.write_text(json.dumps(content))
    report = verify(folder)
    assert not report.ok
    assert "output 'embedding' differs in 1 of" in str(report)


@pytest.mark.slow
def test_the_command_line_prints_lists(task, tmp_path, capsys):
    task.save(tmp_path / "task")
    assert main(["export", str(tmp_path / "task"), str(tmp_path / "out")]) == 0
    capsys.readouterr()
    expected = task.predict(TEXTS[2:])
    for model in ("task", "out"):
        assert main(["predict", str(tmp_path / model), *TEXTS[2:]]) == 0
        lines = capsys.readouterr().out.splitlines()
        found = np.array([json.loads(line) for line in lines], "float32")
        np.testing.assert_allclose(found, expected, atol=1e-6)
    mistakes = [
        (["predict", "task", "cat", "--n-best", "2"], "do not apply to embeddings. .*n_best=2"),
        (["evaluate", "task", "--data", "a.tsv"], "a.tsv: no such file"),
        (
            ["export", "task", "b", "--beams", "2"],
            "is for models that generate text.*Received: beams=2",
        ),
    ]
    for (command, name, *rest), message in mistakes:
        assert main([command, str(tmp_path / name), *rest]) == 2
        assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "sum"}, "Received: pooling='sum'"),
        ({"max_length": 2}, "room for a token between start and end. Received: max_length=2"),
        ({"max_length": 14}, "exceed the model's positions. Received: positions=13, max_length=14"),
        ({"pooling": "pooler", "model": {"pooler": False}}, "needs a backbone with a pooler"),
    ],
)
def test_mistakes_in_making_it(settings, message):
    refused(message, make_task, **settings)


def test_mistakes_in_using_it(task):
    refused("`texts` must be several texts, not one", task.predict, "cat")

"""Runs that begin with another kind of task: a new head, frozen weights, exact resume."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_attn.cli import main
from keras_attn.convert import from_huggingface
from keras_attn.models import Bert, MaskedLanguageModel
from keras_attn.tasks import ClassificationTask, EmbeddingTask, MaskedLMTask, open_task
from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.training import run as job
from tests.convert.made import GOLDEN
from tests.refusals import refused
from tests.written import written

pytestmark = pytest.mark.tensorflow

WORDS = ["apple", "pear", "plum", "hammer", "saw", "file", "a", "the", "my"]
FREEZE = ["embedding/*", "positions/*", "block_0/*"]
TRAINING = {
    "batch_tokens": 128,
    "schedule": "constant",
    "learning_rate": 0.005,
    "warmup_steps": 3,
    "epochs": None,
    "jit": "off",
}


def sentences(count, seed):
    generator = np.random.default_rng(seed)
    articles, nouns = generator.choice(WORDS[6:], count), generator.choice(WORDS[:6], count)
    return [" ".join(pair) for pair in zip(articles, nouns, strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A masked language model as it was made, and data of each kind."""
    folder = tmp_path_factory.mktemp("tuning")
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    keras.utils.set_random_seed(5)
    encoder = Bert(14, 2, 12, 2, 17, max_length=9, dropout=0.0, attention_dropout=0.0)
    MaskedLMTask(MaskedLanguageModel(encoder), tokenizer, 7).save(folder / "masked_lm")
    for part, count, seed in (("train", 200, 1), ("test", 40, 2)):
        texts = sentences(count, seed)
        written(folder / f"{part}.txt", texts)
        labels = ["fruit" if text.split()[1] in WORDS[:3] else "tool" for text in texts]
        pairs = [f"{text}\t{label}" for text, label in zip(texts, labels, strict=True)]
        written(folder / f"{part}.tsv", pairs)
    return folder


@pytest.fixture(scope="module")
def tuned(folder):
    """A classifier by the command line, most of it frozen."""
    run = folder / "classification"
    arguments = ["train", "--init", folder / "masked_lm", "--task", "classification", "--out", run]
    arguments += ["--data", folder / "train.tsv", "--valid", folder / "test.tsv"]
    arguments += ["--test", folder / "test.tsv", "--steps", "60"]
    settings = {f"training.{name}": value for name, value in TRAINING.items()}
    settings |= {"training.freeze": json.dumps(FREEZE), "model.pooling": "first"}
    settings |= {"training.weight_decay": 0.1, "training.ema_decay": 0.9}
    for name, value in settings.items():
        arguments += ["--set", f"{name}={'null' if value is None else value}"]
    assert main([str(argument) for argument in arguments]) == 0
    return run


def by_path(model):
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.mark.slow
def test_a_classifier_from_a_masked_language_model(folder, tuned):
    task = open_task(tuned)
    assert type(task) is ClassificationTask
    assert (task.labels, task.max_length, task.with_start) == (["fruit", "tool"], 7, True)
    assert task.backbone.pooling == "first"
    results = json.loads((tuned / "results.json").read_text())
    assert results["accuracy"] > 90
    assert task.predict(["my plum", "the saw"]) == ["fruit", "tool"]
    assert task.input_ids(["my saw"]).numpy().tolist() == [[2, 13, 9, 3]]


@pytest.mark.slow
def test_frozen_weights_keep_every_bit(folder, tuned):
    before, after = (
        by_path(open_task(folder / name).backbone) for name in ("masked_lm", "classification")
    )
    kept = {path for path in after if path in before and (before[path] == after[path]).all()}
    frozen = {"embedding/embeddings", "positions/embeddings"}
    frozen |= {path for path in after if path.startswith("block_0/")}
    assert len(frozen) == 14
    # What no text uses, and what only the pooler would have, stays by itself.
    assert frozen <= kept <= frozen | {path for path in kept if path.startswith("pooler/")}


def test_the_optimizer_has_nothing_of_frozen_weights(tuned):
    (*_, newest) = sorted((tuned / "checkpoints").glob("step-*"))
    names = [name for name in load_file(newest / "state.safetensors") if name.startswith("opt")]
    assert any("block_1" in name for name in names)
    assert not any("block_0" in name or "positions" in name for name in names)


@pytest.mark.slow
def test_what_is_new_and_what_is_frozen_is_told(folder, tmp_path, capsys):
    layer = {"init": str(folder / "masked_lm"), "task": "classification"}
    layer["data"] = {"train": str(folder / "train.tsv")}
    layer["training"] = TRAINING | {"steps": 1, "freeze": "block_?/*"}
    job.train(tmp_path / "run", layer)
    lines = capsys.readouterr().out.splitlines()
    expected = (
        "head: new and untrained: output; encoder and vocabulary are those of the masked_lm task"
    )
    assert f"      {expected}" in lines
    # Of a block: queries, keys and values, output, two dense layers, two norms. Nothing of the
    # pooler, which a mean over positions leaves out.
    block = 13 * 36 + 13 * 12 + 13 * 17 + 18 * 12 + 2 * 2 * 12
    assert f"Frozen: 24 of 31 weights, {2 * block:,} of 2,568 parameters." in lines
    assert all(weight.trainable for weight in open_task(tmp_path / "run").backbone.weights[:5])


@pytest.mark.slow
def test_other_labels_make_a_new_head(folder, tuned, tmp_path, capsys):
    texts = sentences(60, 3)
    names = {"apple": "fruit", "pear": "fruit", "plum": "stone", "hammer": "tool"}
    pairs = [f"{text}\t{names.get(text.split()[1], 'metal')}" for text in texts]
    path = written(tmp_path / "train.tsv", pairs)
    layer = {"init": str(tuned), "data": {"train": path, "valid": path, "test": path}}
    layer["training"] = TRAINING | {"steps": 60, "freeze": "embedding/*"}
    results = job.train(tmp_path / "run", layer)
    shown = capsys.readouterr().out
    assert "head: new and untrained: output; encoder and vocabulary are those of the " in shown
    assert "of the classification task, whose labels are others: fruit, tool\n" in shown
    task = open_task(tmp_path / "run")
    assert task.labels == ["fruit", "metal", "stone", "tool"]
    assert (task.backbone.pooling, task.with_start, task.max_length) == ("first", True, 7)
    assert results["accuracy"] > 90
    before, after = (by_path(open_task(each).backbone) for each in (tuned, tmp_path / "run"))
    np.testing.assert_array_equal(before["embedding/embeddings"], after["embedding/embeddings"])


@pytest.mark.slow
def test_fewer_labels_keep_the_head(folder, tuned, tmp_path, capsys):
    path = written(tmp_path / "train.tsv", ["my plum\tfruit", "a pear\tfruit"] * 4)
    layer = {"init": str(tuned), "data": {"train": path, "valid": path}}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 1}})
    assert "head:" not in capsys.readouterr().out
    assert open_task(tmp_path / "run").labels == ["fruit", "tool"]


NO_WEIGHTS, CLASSES = "without weights of its own", "new and untrained: output"
GAPS = "new and untrained: transform, transform_norm, bias"


@pytest.mark.parametrize(
    ("init", "task", "expected"),
    [
        (MaskedLMTask, "embedding", NO_WEIGHTS),
        (ClassificationTask, "masked_lm", GAPS),
        (ClassificationTask, "embedding", NO_WEIGHTS),
        (EmbeddingTask, "classification", CLASSES),
        (EmbeddingTask, "masked_lm", GAPS),
    ],
)
@pytest.mark.slow
def test_other_kinds(init, task, expected, folder, tuned, tmp_path, capsys):
    begun_with = open_task(folder / "masked_lm")
    if init is ClassificationTask:
        begun_with = open_task(tuned)
    if init is EmbeddingTask:
        encoder = begun_with.backbone.encoder
        begun_with = EmbeddingTask(encoder, begun_with.tokenizer, max_length=7)
    begun_with.save(tmp_path / "init")
    data = {
        "train": str(folder / f"train.{'txt' if task == 'masked_lm' else 'tsv'}"),
        "hold_out": 2,
    }
    layer = {"init": str(tmp_path / "init"), "task": task, "data": data}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 1}})
    told = f"head: {expected}; encoder and vocabulary are those of the {init.kind} task\n"
    assert told in capsys.readouterr().out
    found = open_task(tmp_path / "run")
    assert (found.kind, found.max_length) == (task, 7)
    path = "block_1/attention/output/kernel"
    before, after = (by_path(one.backbone)[path] for one in (begun_with, found))
    assert 0 < np.abs(before - after).max() < 0.02


@pytest.mark.slow
def test_a_converted_bert(tmp_path):
    from_huggingface(GOLDEN / "masked_bert").save(tmp_path / "bert")
    lines = [f"a {word}\t{word}" for word in ("cat", "dog", "mat")] * 20
    layer = {"init": str(tmp_path / "bert"), "task": "classification"}
    layer["data"] = {"train": written(tmp_path / "data.tsv", lines)}
    layer["data"]["valid"] = layer["data"]["train"]
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 40}})
    assert open_task(tmp_path / "run").predict(["a dog", "a cat"]) == ["dog", "cat"]


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_alike(folder, tmp_path):
    layer = {"init": str(folder / "masked_lm"), "task": "classification", "data": {"hold_out": 5}}
    layer["data"]["train"] = str(folder / "train.tsv")
    layer["training"] = TRAINING | {"epochs": 2, "freeze": FREEZE, "weight_decay": 0.1}
    job.train(tmp_path / "whole", layer)
    job.train(tmp_path / "halves", layer | {"training": layer["training"] | {"epochs": 1}})
    job.train(tmp_path / "halves", {"training": {"epochs": 2}}, resume=True)
    tables = [(tmp_path / name / "metrics.csv").read_text() for name in ("whole", "halves")]
    assert tables[0] == tables[1]
    models = [by_path(open_task(tmp_path / name).backbone) for name in ("whole", "halves")]
    np.testing.assert_equal(*models)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            {"task": "causal_lm"},
            "`init` must hold a task of kind causal_lm. Received: init=.*found='masked_lm'",
        ),
        (
            {"model": {"num_layers": 3}},
            "cannot be combined with `--init`.* model=.'num_layers': 3.",
        ),
        ({"task": "masked_lm", "model": {"pooling": "max"}}, "the model comes from the checkpoint"),
        ({"model": {"pooling": "sum"}}, "`pooling` must be one of"),
        ({"training": {"freeze": ["block_7/*"]}}, "'block_1/.', .*Received: 'block_7/.'"),
        ({"data": {"max_source_length": 10}}, "exceed .*Received: positions=9, max_length=10"),
    ],
)
def test_mistakes(layer, message, folder, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("one\ntwo\nthree\n")
    if layer.get("task") in ("causal_lm", "masked_lm"):
        layer = layer | {"data": {"train": str(texts)}}
    data = {"train": str(folder / "train.tsv")} | layer.get("data", {})
    base = {"init": str(folder / "masked_lm"), "task": "classification"}
    refused(message, job.train, tmp_path / "run", base | layer | {"data": data})

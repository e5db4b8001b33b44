"""Self-pretraining: masked tokens of a task's own inputs, then the task from these weights."""

import numpy as np
import pytest
import yaml

from keras_attn.tasks import open_task
from keras_attn.training import run as job
from keras_attn.training.run_settings import RunSettings
from tests.refusals import refused
from tests.written import written

pytestmark = pytest.mark.tensorflow

DATA = {"train": ["listops:train=40,validation=8,test=8"], "max_source_length": 66}
SIZES = {"num_layers": 1, "hidden_dim": 12, "num_heads": 2, "intermediate_dim": 17}
TRAINING = {"steps": 2, "warmup_steps": 0, "schedule": "constant", "jit": "off"}
FROM = {"task": "classification", "preset": "arena_tiny"}


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A run of masked tokens, and what it printed, are made by the first test that asks."""
    run = tmp_path_factory.mktemp("self") / "pretrained"
    layer = {"task": "masked_lm", "preset": "arena_tiny", "model": SIZES, "data": DATA}
    job.train(run, layer | {"training": TRAINING})
    return run


def by_path(run):
    return {weight.path: weight.numpy() for weight in open_task(run).backbone.encoder.weights}


@pytest.mark.slow
def test_the_task_starts_from_the_weights_and_the_vocabulary(pretrained, tmp_path, capsys):
    before = open_task(pretrained)
    assert before.tokenizer.vocabulary[-1] == "[MASK]"
    # At this rate the trained weights stay what they were.
    training = TRAINING | {"learning_rate": 1e-7, "weight_decay": 0.0}
    data = {"data": DATA, "training": training}
    job.train(tmp_path / "run", FROM | {"init": str(pretrained)} | data)
    expected = "head: new and untrained: output; encoder and vocabulary are those of the masked_lm"
    assert expected in capsys.readouterr().out
    after = open_task(tmp_path / "run")
    assert after.tokenizer.vocabulary == before.tokenizer.vocabulary
    assert (after.kind, after.with_start, after.max_length) == ("classification", True, 66)
    weights, others = by_path(pretrained), by_path(tmp_path / "run")
    assert weights.keys() == others.keys()
    for path in weights:
        np.testing.assert_allclose(others[path], weights[path], atol=1e-5)
    assert np.abs(weights["embedding/embeddings"]).max() > 1e-2


def test_the_recipe_is_that_of_the_preset(pretrained):
    data = {"data": DATA}
    untrained = RunSettings.resolve(FROM | data)
    settings = RunSettings.resolve(FROM | {"init": str(pretrained)} | data)
    assert (settings.preset, settings.init) == (None, str(pretrained))
    assert settings.training == untrained.training
    assert settings.metrics == untrained.metrics
    assert (settings.model, settings.tokenizers) == ({}, {})
    assert untrained.tokenizers
    written_settings = yaml.safe_load(yaml.safe_dump(settings.to_dict()))
    assert RunSettings.resolve(written_settings) == settings
    # The same command with --resume.
    assert RunSettings.resolve(written_settings, FROM | {"init": str(pretrained)}) == settings


@pytest.mark.slow
def test_only_the_texts_are_read(pretrained, tmp_path, capsys):
    """Of generated data and of tables, each with a line that says so."""
    layer = {"task": "masked_lm", "preset": "arena_tiny", "model": SIZES}
    layer["training"] = TRAINING | {"steps": 1}
    job.train(tmp_path / "generated", layer | {"data": DATA | {"test": []}})
    lines = capsys.readouterr().out.splitlines()
    assert f"{DATA['train'][0]}: only the texts are read, not the labels." in lines
    table = written(tmp_path / "t.csv", ["text,label", *(f"word{n} a b,c" for n in range(9))])
    layer["tokenizers"] = {"text": {"kind": "byte_level_bpe", "vocabulary_size": 261}}
    job.train(tmp_path / "table", layer | {"data": {"train": [table], "hold_out": 2}})
    assert "columns text=text; not read: 'label'" in capsys.readouterr().out
    (text,) = open_task(tmp_path / "table").predict(["word[MASK]"])
    assert text.startswith("word")


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            {"tokenizers": {"text": {"kind": "characters"}}},
            "cannot be combined with `--init`: the tokenizers come from the checkpoint",
        ),
        ({"model": {"hidden_dim": 12}}, "the model comes from the checkpoint"),
        ({"attention": "linear"}, "the model comes from the checkpoint"),
        ({"preset": "encoder_tiny"}, "run of that preset. .*preset_of_init='arena_tiny'"),
        ({"task": "regression"}, "`task` must be one of 'classification', 'masked_lm'"),
        (
            {"task": "masked_lm", "data": {"hold_out": 3}},
            "`data.hold_out` has no meaning for listops.*hold_out=3",
        ),
    ],
)
def test_mistakes(layer, message, pretrained, tmp_path):
    data = DATA | layer.get("data", {})
    layer = FROM | {"init": str(pretrained)} | layer | {"data": data}
    refused(message, job.train, tmp_path / "run", layer)

"""Examples in docstrings run and print what they show."""

import doctest
import importlib
import inspect
import random
import re
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_attn
from keras_attn.tasks import Task
from tests.convert.made import BERT, GOLDEN, GPT2, config, copy_of
from tests.convert.naive_g2p import made_arrays

PROJECT = Path(__file__).parents[2]
# Folders in which every public class and function has an example; "" is the package itself.
# Those whose examples run on every Keras backend.
NEUTRAL = ("ops", "layers", "models", "generation", "tokenizers", "evaluation")
COMPLETE = (
    *NEUTRAL,
    *("", "convert", "data", "export", "serving", "tasks", "training", "tuning", "visualization"),
)
# Folders whose names their examples use, besides those of layers and models.
OTHERS = {
    "data": ("tokenizers",),
    "tasks": ("tokenizers", "data", "training"),
    "training": ("tokenizers", "data", "tasks"),
}
# Examples that train or export, as others do that are run.
SLOW = (
    *("AttentionImages", "CausalLMTask", "ExportedCausalLM", "ExportedImageClassification"),
    *("ExportedMaskedLM", "ExportedMultiLabelClassification", "ExportedQuestionAnswering"),
    *("ExportedRank", "ExportedRegression", "ExportedSeq2Seq", "ExportedTokenClassification"),
    *("Hypothesis", "MaskedLMTask", "MultiLabelClassificationTask", "PresetHyperModel"),
    *("RegressionTask", "Seq2SeqTask", "ensemble", "load_listops", "measure"),
)


def public(folder):
    module = importlib.import_module(f".{folder}", "keras_attn")
    things = {name: getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in things.items()
        if inspect.isclass(thing) or inspect.isfunction(thing)
    }


class AnywhereAlike(doctest.OutputChecker):
    """Reads shapes of every backend as tuples, and no progress, which slow machines report."""

    def check_output(self, want, got, optionflags):
        plain = re.sub(r"(?:TensorShape|torch\.Size)\(\[(.*?)\]\)", r"(\1)", got)
        plain = re.sub(r"^step \d+/\d+ .*\n", "", plain, flags=re.MULTILINE)
        return super().check_output(want, plain, optionflags)


FOLDERS = COMPLETE if keras.backend.backend() == "tensorflow" else NEUTRAL
CASES = [
    pytest.param(folder, name, id=f"{folder}.{name}", marks=[pytest.mark.slow] * (name in SLOW))
    for folder in FOLDERS
    for name in public(folder)
]


@pytest.fixture(scope="module")
def exported_reviews(tmp_path_factory):
    """The export of a classifier that has learned which reviews are good."""
    random.seed(1)
    rows = [(f"{label} {noun}", label) for label in ("good", "bad") for noun in ("film", "book")]
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "dropout": 0.0}
    task = Task.from_preset("encoder_tiny", rows, task="classification", model=sizes)
    inputs = task.model_inputs(task.input_ids([text for text, _ in rows]))
    labels = np.array([task.labels.index(label) for _, label in rows])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    task.backbone.compile(keras.optimizers.Adam(0.02), loss)
    task.backbone.fit(inputs, labels, epochs=60, verbose=0)
    return task.export(tmp_path_factory.mktemp("exported") / "reviews").parent


@pytest.fixture
def working_directory(folder, tmp_path, monkeypatch, request):
    """A new folder, with the models and checkpoints that examples read."""
    (tmp_path / "saved_models").symlink_to(PROJECT / "saved_models")
    if folder in ("export", "serving"):
        exported = request.getfixturevalue("exported_reviews")
        shutil.copytree(exported, tmp_path / "exported" / "reviews")
    if folder == "convert":
        config(architectures=["BertModel"])(copy_of(GOLDEN / "masked_bert", tmp_path / "bert"))
        copy_of(BERT, tmp_path / "tiny_bert")
        copy_of(GPT2, tmp_path / "gpt2")
        copy_of(GOLDEN / "big_bird_full", tmp_path / "big_bird")
        np.savez(tmp_path / "checkpoint20.npz", **made_arrays())
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("folder", "name"), CASES)
@pytest.mark.usefixtures("working_directory")
def test_examples_print_what_they_show(folder, name):
    names = {"keras": keras, "np": np, "keras_attn": keras_attn}
    for imported in ("layers", "models", *OTHERS.get(folder, ()), folder):
        names |= public(imported)
    documentation = inspect.getdoc(public(folder)[name])
    example = doctest.DocTestParser().get_doctest(documentation, names, name, None, None)
    assert example.examples, "no example"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(AnywhereAlike(), optionflags=flags)
    printed = []
    runner.run(example, out=printed.append)
    assert not runner.failures, "".join(printed)

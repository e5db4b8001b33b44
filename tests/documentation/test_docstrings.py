"""Examples in docstrings run and print what they show."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest

# Folders in which every public class and function has an example.
COMPLETE = (
    *("layers", "models", "generation", "tokenizers", "evaluation"),
    *("data", "tasks", "training"),
)
# Folders about TensorFlow, and whose names their examples use besides those of layers and models.
ON_TENSORFLOW = {
    "data": ("tokenizers",),
    "tasks": ("tokenizers", "data", "training"),
    "training": ("tokenizers", "data", "tasks"),
}
# Examples that take ten seconds, most of them for exports.
SLOW = ("ExportedCausalLM", "ExportedMaskedLM")
SAVED_MODELS = Path(__file__).resolve().parents[2] / "saved_models"


def public(folder):
    module = importlib.import_module(f"keras_attn.{folder}")
    things = {name: getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in things.items()
        if inspect.isclass(thing) or inspect.isfunction(thing)
    }


class AnyBackend(doctest.OutputChecker):
    """Reads shapes of every backend as tuples."""

    def check_output(self, want, got, optionflags):
        plain = re.sub(r"(?:TensorShape|torch\.Size)\(\[(.*?)\]\)", r"(\1)", got)
        return super().check_output(want, plain, optionflags)


def marks(folder, name):
    return [
        *([pytest.mark.tensorflow] if folder in ON_TENSORFLOW else []),
        *([pytest.mark.slow] if name in SLOW else []),
    ]


CASES = [
    pytest.param(folder, name, id=f"{folder}.{name}", marks=marks(folder, name))
    for folder in COMPLETE
    for name in public(folder)
]


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_examples_print_what_they_show(folder, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("saved_models").symlink_to(SAVED_MODELS)
    names = {"keras": keras, "np": np}
    for imported in ("layers", "models", *ON_TENSORFLOW.get(folder, ()), folder):
        names |= public(imported)
    documentation = inspect.getdoc(public(folder)[name])
    example = doctest.DocTestParser().get_doctest(documentation, names, name, None, None)
    assert example.examples, "no example"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(AnyBackend(), optionflags=flags)
    printed = []
    runner.run(example, out=printed.append)
    assert not runner.failures, "".join(printed)

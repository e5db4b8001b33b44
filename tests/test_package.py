"""The package as a whole: what it imports, names and documents."""

import importlib
import importlib.metadata
import inspect
import pathlib
import pkgutil

import keras
import pytest

import keras_attn
from tests.harness import run_python

PROJECT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = [module.name for module in pkgutil.iter_modules(keras_attn.__path__) if module.ispkg]
NEUTRAL = ("ops", "layers", "models", "generation")

# Keras calls these; the class says what they do.
PROTOCOL = {"build", "call", "compute_mask", "compute_output_shape", "compute_output_spec"}
PROTOCOL |= {"get_config", "from_config", "get_build_config", "build_from_config"}

WITHOUT_TENSORFLOW = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import keras_attn.layers
for name in sys.argv[1:]:
    importlib.import_module(f"keras_attn.{name}")
import keras, numpy as np
assert keras.backend.backend() == "jax"
from keras_attn.layers import FeedForward, MultiHeadAttention, TransformerEncoderBlock
block = TransformerEncoderBlock(MultiHeadAttention(2, 3), FeedForward(11))
assert block(np.ones((2, 5, 7), "float32")).shape == (2, 5, 7)
assert "tensorflow" not in sys.modules
"""


def public_objects():
    on_tensorflow = keras.backend.backend() == "tensorflow"
    for folder in FOLDERS if on_tensorflow else NEUTRAL:
        module = importlib.import_module(f"keras_attn.{folder}")
        for name in getattr(module, "__all__", ()):
            yield pytest.param(getattr(module, name), id=f"{folder}.{name}")


def public_functions(thing):
    """The function itself, or the methods that a class defines for its users."""
    if inspect.isfunction(thing):
        yield thing
    elif inspect.isclass(thing):
        for name, member in vars(thing).items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(function):
                keras_calls_it = issubclass(thing, keras.layers.Layer) and name in PROTOCOL
                if not keras_calls_it:
                    yield function


def test_version_is_that_of_the_installed_distribution():
    assert importlib.metadata.version("keras_attn") == keras_attn.__version__


def test_importing_the_package_imports_nothing_heavy():
    run_python(
        "import keras_attn, sys; "
        "assert not {'keras', 'tensorflow', 'numpy'} & set(sys.modules); "
        "assert keras_attn.layers.MultiHeadAttention; assert 'keras' in sys.modules"
    )


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'keras_attn' has no attribute 'layer'"):
        keras_attn.layer  # noqa: B018
    assert set(dir(keras_attn)) >= {"layers", "models", "tasks", "__version__"}


def test_layers_and_models_need_no_tensorflow():
    run_python(WITHOUT_TENSORFLOW, *NEUTRAL, KERAS_BACKEND="jax")


@pytest.mark.parametrize("thing", list(public_objects()))
def test_what_is_public_is_documented_and_annotated(thing):
    if not (inspect.isfunction(thing) or inspect.isclass(thing)):
        return
    assert inspect.getdoc(thing), "no docstring"
    if inspect.isclass(thing):
        assert inspect.getdoc(thing) != inspect.getdoc(thing.__base__), "no docstring of its own"
    for function in public_functions(thing):
        where = function.__qualname__
        assert inspect.getdoc(function), f"{where} has no docstring"
        if function.__module__.split(".")[1] in ("layers", "models"):
            continue  # tensors of any backend have no type to write
        signature = inspect.signature(function)
        bare = [
            name
            for name, parameter in signature.parameters.items()
            if parameter.annotation is parameter.empty and name not in ("self", "cls")
        ]
        assert not bare, f"{where}: {bare} have no annotation"
        assert signature.return_annotation is not signature.empty, f"{where}: no return annotation"


def test_readme_begins_with_one_line_to_run_and_one_to_test():
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    blocks = text.split("```")[1::2]
    run, test = (block.split("\n", 1)[1].strip() for block in blocks[:2])
    assert "\n" not in run
    assert "\n" not in test
    assert "keras-attn train" in run
    assert test.endswith("-m pytest -n auto --dist loadfile")

"""One import of the package registers all that Keras can save, whichever comes first."""

import keras
import numpy as np
import pytest

import keras_attn
from keras_attn.layers import MultiHeadAttention
from tests.harness import run_python

# Any order, and any of our modules, may come first.
BEGINNINGS = (
    "import keras_attn, keras",
    "import keras, keras_attn",
    pytest.param(
        "from keras_attn.layers.attention.lsh_attention import LSHAttention", marks=pytest.mark.slow
    ),
    pytest.param("import keras_attn.training.loop.losses", marks=pytest.mark.slow),
)

NAMES = """
import sys
{beginning}
import keras
def registered():
    return {{name for name in keras.saving.get_custom_objects() if name.startswith("keras_attn>")}}
found = registered()
assert not [f for f in sys.meta_path if type(f).__module__.startswith("keras_attn")]
assert keras.__spec__.loader is keras.__loader__
assert keras.__loader__.get_source("keras")
assert keras.backend.backend() == "tensorflow" or "tensorflow" not in sys.modules
if {all}:
    import importlib, pkgutil, keras_attn
    for module in pkgutil.walk_packages(keras_attn.__path__, "keras_attn."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert found == registered(), registered() ^ found
print(len(found))
"""

LOAD = """
import sys, keras_attn, numpy as np
from keras.saving import load_model
model = load_model(sys.argv[1])
np.save(sys.argv[2], model(np.load(sys.argv[3]), training=False))
"""


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_all_names_are_registered(beginning):
    assert int(run_python(NAMES.format(beginning=beginning, all=False))) > 60


@pytest.mark.tensorflow  # which tasks and training need
def test_no_module_registers_more():
    run_python(NAMES.format(beginning="import keras_attn, keras", all=True))


def test_a_model_loads_after_the_package_alone(tmp_path):
    x = keras.Input((None, 7))
    model = keras.Model(x, MultiHeadAttention(2, 3)(x, x))
    loss = keras_attn.training.TokenCrossEntropy()
    model.compile(keras.optimizers.SGD(keras_attn.training.WarmupCosine(0.1, 5, 9)), loss)
    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(2, 5, 7)).astype("float32"))
    run_python(LOAD, *(tmp_path / name for name in ("model.keras", "y.npy", "x.npy")))
    expected = keras.ops.convert_to_numpy(model(np.load(tmp_path / "x.npy"), training=False))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


@pytest.mark.slow
def test_keras_can_be_looked_for_and_fail():
    """A search finds it, a failed import raises its own error and may be repeated."""
    run_python("""
import sys, importlib.util, keras_attn
assert importlib.util.find_spec("keras").loader.get_source("keras")
sys.modules["absl"] = None  # Keras needs it
try:
    import keras
except ImportError as error:
    assert "absl" in str(error), error
else:
    raise SystemExit("Keras was imported")
del sys.modules["absl"]
import keras
assert "keras_attn>MultiHeadAttention" in keras.saving.get_custom_objects()
""")


@pytest.mark.slow
def test_threads_may_import_both():
    run_python("""
import importlib, keras_attn, threading
names = ["keras", "keras_attn.layers", "keras_attn.models", "keras", "keras_attn.generation"]
errors = []
def load(name):
    try:
        importlib.import_module(name)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=load, args=(name,)) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
import keras
assert "keras_attn>Bert" in keras.saving.get_custom_objects()
""")

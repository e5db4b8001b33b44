"""What every layer must do in a user's hands, whatever it computes.

A `LayerCase` says how a layer is made and called and what comes out; each `check_*` function holds
it against one promise. `check_layer` runs all of those that need one process; `SavedElsewhere`
saves the models of many cases and has one fresh process load them all.
"""

import dataclasses
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from keras import ops, tree

PROJECT = pathlib.Path(__file__).resolve().parent.parent
BASE_CONFIG = {"name", "trainable", "dtype", "activity_regularizer"}  # of every Keras layer


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """One way to make a layer and to call it.

    Attributes:
        layer: The class.
        arguments: Arguments of its constructor, without `name` and `dtype`. Callables among them
            are called for a new value each time (for layers as arguments).
        inputs: Arrays by name of the call's arguments, batch first; the first of them is passed
            by position.
        outputs: Shapes that come out, derived by hand: one tuple of numbers or a structure of them.
        trainable: Number of trainable weights.
        non_trainable: Number of weights that training leaves alone (seeds counted).
        options: Further arguments of the call that are not tensors.
        still: Ends of the paths of weights that a step of training may leave alone, such as those
            of biases of keys.
        tolerance: Largest difference that float16 may make, where outputs are of size 1; bfloat16
            is allowed eight times as much.
        note: What tells the cases of one class apart.
    """

    layer: type[keras.layers.Layer]
    arguments: Mapping[str, Any]
    inputs: Mapping[str, np.ndarray]
    outputs: Any
    trainable: int
    non_trainable: int = 0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    still: tuple[str, ...] = ()
    tolerance: float = 0.01
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.layer.__name__}-{self.note}" if self.note else self.layer.__name__

    def make(self, **arguments) -> keras.layers.Layer:
        return self.layer(**_made(self.arguments), **arguments)

    def call(self, layer, inputs=None, **arguments):
        inputs = self.inputs if inputs is None else inputs
        first, *rest = self.inputs  # in this order: JAX sorts the keys of what passes through it
        rest = {name: inputs[name] for name in rest}
        return layer(inputs[first], **rest, **self.options, **arguments)


def _made(value):
    if isinstance(value, Mapping):
        return {name: _made(part) for name, part in value.items()}
    return value() if inspect.isfunction(value) else value


def numbers(rng_or_seed, *shape) -> np.ndarray:
    """Normally distributed float32 numbers."""
    return np.random.default_rng(rng_or_seed).normal(size=shape).astype("float32")


def constructor_arguments(layer: type) -> dict[str, inspect.Parameter]:
    """The arguments that `help(layer)` lists, without `self` and `**kwargs`."""
    return _named(inspect.signature(layer.__init__))


def own_arguments(layer: type) -> dict[str, inspect.Parameter]:
    """The arguments that `layer.__init__` names itself."""
    return _named(inspect.signature(inspect.unwrap(layer.__init__)))


def _named(signature: inspect.Signature) -> dict[str, inspect.Parameter]:
    parameters = list(signature.parameters.values())[1:]
    return {p.name: p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD}


def inherited_arguments(layer: type) -> set[str]:
    """The arguments that `**kwargs` hands on to parents which are layers of this package."""
    parents = [parent for parent in layer.__mro__ if parent.__module__.startswith("keras_attn.")]
    return {name for parent in parents for name in constructor_arguments(parent)}


def check_layer(case: LayerCase) -> None:
    """Runs every check that needs no further process."""
    for check in CHECKS:
        check(case)


def check_config(case: LayerCase) -> None:
    """Every argument of the constructor is in the config, with the value that was given."""
    layer = case.make()
    config = layer.get_config()
    expected = set(constructor_arguments(case.layer))
    missing = expected - set(config)
    unknown = set(config) - expected - inherited_arguments(case.layer) - BASE_CONFIG
    assert not missing, f"get_config lacks {sorted(missing)}"
    assert not unknown, f"get_config has {sorted(unknown)}, which __init__ does not take"
    json.dumps(config)
    for name, value in _made(case.arguments).items():
        if isinstance(value, bool | int | float | str | None):
            assert _plain(config[name]) == value, f"{name}={value!r} became {config[name]!r}"
    copy = case.layer.from_config(config)
    assert copy.get_config() == config, "from_config(get_config()) has another config"


def _plain(value):
    # Keras serialises `kernel_initializer="he_normal"` as a class with its settings.
    if isinstance(value, dict) and "class_name" in value:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", value["class_name"]).lower()
    return value


def check_weights(case: LayerCase) -> None:
    """The layer has the weights that it should have, float32, with paths of their own."""
    layer = built(case)
    assert len(layer.trainable_variables) == case.trainable
    assert len(layer.non_trainable_variables) == case.non_trainable
    paths = [variable.path for variable in layer.variables]
    assert len(set(paths)) == len(paths), f"two weights share a path: {sorted(paths)}"


def check_copy(case: LayerCase) -> None:
    """A layer made from the config, with the same weights, gives the very same numbers."""
    layer = built(case)
    copy = case.layer.from_config(layer.get_config())
    case.call(copy, symbolic_inputs(case, lengths_known=True))
    copy.set_weights(layer.get_weights())
    assert_equal(computed(case, layer), computed(case, copy))


def check_call_keeps_no_state(case: LayerCase) -> None:
    """A call leaves nothing behind on the layer and repeats itself bit by bit."""
    layer = built(case)
    before, run = dict(vars(layer)), program(case, layer)
    fewer = {name: array[:1] for name, array in case.inputs.items()}
    first = run(dict(case.inputs))
    run(fewer)
    assert_equal(first, run(dict(case.inputs)))
    run(fewer)
    changed = {name for name, value in vars(layer).items() if before.get(name) is not value}
    assert not changed - {"_called", "_loss_ids", "_losses"}, f"a call set {sorted(changed)}"


def check_shapes(case: LayerCase) -> None:
    """Symbolic shapes and dtypes are the eager ones, with known and with unknown lengths."""
    eager = computed(case, built(case))
    assert tree.map_structure(lambda x: tuple(x.shape), eager) == case.outputs
    for lengths_known in (True, False):
        inputs = symbolic_inputs(case, lengths_known)
        symbolic = case.call(case.make(), inputs)
        tree.assert_same_structure(symbolic, eager)
        for s, e in zip(tree.flatten(symbolic), tree.flatten(eager), strict=True):
            assert keras.backend.standardize_dtype(s.dtype) == dtype_of(e)
            known = tuple(e.shape[1:])
            assert len(s.shape) == len(e.shape)
            assert s.shape[0] is None
            if lengths_known:
                assert tuple(s.shape[1:]) == known
            else:
                assert all(a in (None, b) for a, b in zip(s.shape[1:], known, strict=True))


def check_functional_model(case: LayerCase) -> None:
    """In a stranger's functional model, lengths unknown, it computes the same and learns."""
    layer = built(case)
    expected = computed(case, layer)
    inputs = symbolic_inputs(case, lengths_known=False)
    model = keras.Model(inputs, case.call(layer, inputs))
    assert_near(computed(case, model), expected, 1e-5)
    if keras.backend.backend() == "jax":  # lengths are always known where it compiles a step
        return
    trained = keras.Model(inputs, keras.layers.Dense(1)(summary(case.call(layer, inputs))))
    fit_one_step(trained, case)


def check_subclassed_model(case: LayerCase) -> None:
    """In a stranger's subclassed model it learns, and its weights fit another such model."""
    model, other = Stranger(case), Stranger(case)
    if keras.backend.backend() == "jax":  # elsewhere the functional model is trained
        fit_one_step(model, case)
    else:
        model(symbolic_inputs(case, lengths_known=True))
        assert_finite(model(dict(case.inputs), training=True))
    other(symbolic_inputs(case, lengths_known=True))
    expected = computed(case, model)
    for weight, value in zip(other.weights, model.get_weights(), strict=True):
        weight.assign(value)
    assert_equal(computed(case, other), expected)


def check_jit(case: LayerCase) -> None:
    """It trains under `compile(jit_compile=True)`, to the same loss as without."""
    model, plain = Stranger(case), Stranger(case)
    for each in (plain, model):
        each(symbolic_inputs(case, lengths_known=True))
    plain.set_weights(model.get_weights())
    losses = [fit_one_step(m, case, jit_compile=m is model) for m in (model, plain)]
    if not case.non_trainable:  # with dropout the two draw other masks
        np.testing.assert_allclose(*losses, rtol=1e-4)


def check_mixed_precision(case: LayerCase) -> None:
    """In half precision the weights stay float32 and the outputs near those of float32."""
    layer = built(case)
    expected = computed(case, layer)
    for dtype, share in (("float16", 1), ("bfloat16", 8)):
        mixed = case.make(dtype=f"mixed_{dtype}")
        case.call(mixed, symbolic_inputs(case, lengths_known=True))
        mixed.set_weights(layer.get_weights())
        outputs = computed(case, mixed)
        for variable in mixed.trainable_variables:
            assert variable.dtype == "float32", f"{variable.path} is {variable.dtype}"
        for output, e in zip(tree.flatten(outputs), tree.flatten(expected), strict=True):
            if "float" in dtype_of(e):
                assert dtype_of(output) == dtype
        assert_finite(outputs)
        assert_near(outputs, expected, share * case.tolerance)
    # Keras fails to add an activity regulariser's half-precision loss to others (Dense's too).
    if "activity_regularizer" not in case.arguments:
        # Of the two float16 is the one that overflows. `check_subclassed_model` trains graphs.
        fit_one_step(Stranger(case, dtype="mixed_float16"), case, run_eagerly=True)


CHECKS: tuple[Callable[[LayerCase], None], ...] = (
    check_config,
    check_weights,
    check_copy,
    check_call_keeps_no_state,
    check_shapes,
    check_functional_model,
    check_subclassed_model,
    check_jit,
    check_mixed_precision,
)


class Stranger(keras.Model):
    """A user's own model with one layer of ours in it."""

    def __init__(self, case: LayerCase, **arguments):
        super().__init__()
        self.case = case
        self.layer = case.make(**arguments)
        self.head = keras.layers.Dense(1)

    def call(self, inputs, training=None):
        return self.head(summary(self.case.call(self.layer, inputs, training=training)))


def summary(outputs):
    """One feature a row from each float output: (batch, outputs)."""
    features = []
    for output in tree.flatten(outputs):
        if "float" in dtype_of(output):
            x = ops.tanh(ops.cast(output, "float32"))
            features.append(ops.mean(x, axis=tuple(range(1, len(x.shape)))))
    return ops.stack(features, axis=1)


def fit_one_step(model, case: LayerCase, jit_compile=False, run_eagerly=False) -> float:
    """Fits one step on the case's inputs; every trainable weight must move. Returns the loss."""
    rows = len(next(iter(case.inputs.values())))
    on_jax = keras.backend.backend() == "jax"
    how = {"jit_compile": jit_compile or on_jax, "run_eagerly": run_eagerly and not on_jax}
    model.compile(keras.optimizers.SGD(0.5), "mse", **how)
    model(symbolic_inputs(case, lengths_known=True))  # builds it
    before = [ops.convert_to_numpy(v) for v in model.trainable_variables]
    targets = np.linspace(1, 2, rows).astype("float32")
    history = model.fit(dict(case.inputs), targets, batch_size=rows, epochs=1, verbose=0)
    loss = history.history["loss"][0]
    assert np.isfinite(loss)
    for variable, old in zip(model.trainable_variables, before, strict=True):
        new = ops.convert_to_numpy(variable)
        assert np.isfinite(new).all(), f"{variable.path} is no longer finite"
        if not variable.path.endswith(case.still or ("no such path",)):
            assert not np.array_equal(new, old), f"a step of training left {variable.path} alone"
    return loss


def built(case: LayerCase) -> keras.layers.Layer:
    """A layer of the case, built by a call; weights that start equal are spread a little."""
    layer = case.make()
    case.call(layer, symbolic_inputs(case, lengths_known=True))
    rng = np.random.default_rng(7)
    for variable in layer.trainable_variables:
        value = ops.convert_to_numpy(variable)
        if value.size and np.ptp(value) == 0:
            variable.assign(value + 0.1 * rng.normal(size=value.shape))
    return layer


def program(case: LayerCase, layer: keras.layers.Layer) -> Callable[[dict], Any]:
    """A layer or model as a function of inputs; compiled on JAX, where each operation would be."""
    is_model = isinstance(layer, keras.Model)
    run = layer if is_model else lambda inputs: case.call(layer, inputs)
    if keras.backend.backend() != "jax":
        return run
    import jax

    return jax.jit(run)


def computed(case: LayerCase, layer: keras.layers.Layer) -> Any:
    """What a layer or model makes of the inputs."""
    return program(case, layer)(dict(case.inputs))


def symbolic_inputs(case: LayerCase, lengths_known: bool) -> dict[str, Any]:
    """`keras.Input`s for the case; unknown lengths leave only the features of floats known."""
    inputs = {}
    for name, array in case.inputs.items():
        shape = array.shape[1:]
        if not lengths_known:
            known = 1 if "float" in str(array.dtype) else 0
            shape = tuple(
                size if axis >= len(shape) - known else None for axis, size in enumerate(shape)
            )
        inputs[name] = keras.Input(shape, dtype=str(array.dtype), name=name)
    return inputs


def dtype_of(tensor) -> str:
    return keras.backend.standardize_dtype(tensor.dtype)


def arrays(structure) -> list[np.ndarray]:
    return [
        ops.convert_to_numpy(ops.cast(x, "float32") if "float" in dtype_of(x) else x)
        for x in tree.flatten(structure)
    ]


def arrays_of(path: str | pathlib.Path) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file, which is closed."""
    with np.load(path) as file:
        return dict(file)


def numpy(tensor) -> np.ndarray:
    return ops.convert_to_numpy(tensor)


def _leaves(structure) -> list[np.ndarray]:
    """The tensors of a structure; of numbers in lists, one array."""
    leaves = tree.flatten(structure)
    if all(isinstance(leaf, bool | int | float) for leaf in leaves):
        return [np.asarray(structure)]
    return [numpy(leaf) for leaf in leaves]


def assert_close(found, expected, **tolerance) -> None:
    """Compares tensors of any kind and structure, each by `np.testing.assert_allclose`."""
    for one, other in zip(_leaves(found), _leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def assert_same(found, expected, **options) -> None:
    """Compares tensors of any kind and structure, each by `np.testing.assert_array_equal`."""
    for one, other in zip(_leaves(found), _leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other, **options)


def assert_saved(model, inputs, folder) -> keras.Model:
    """A model that was saved and loaded, which computes the very same."""
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras", safe_mode=True)
    assert_same(loaded(inputs), model(inputs))
    return loaded


def assert_equal(actual, expected) -> None:
    for a, e in zip(arrays(actual), arrays(expected), strict=True):
        np.testing.assert_array_equal(a, e)


def assert_near(actual, expected, tolerance: float) -> None:
    for a, e in zip(arrays(actual), arrays(expected), strict=True):
        size = max(1.0, float(np.abs(e).max(initial=0)))
        np.testing.assert_allclose(a, e, rtol=0, atol=tolerance * size)


def assert_finite(structure) -> None:
    assert all(np.isfinite(x).all() for x in arrays(structure))


# Runs in a process of its own, which knows no more than that the layers exist.
LOAD = """
import json, pathlib, sys
import keras, numpy as np
import {package}

folder = pathlib.Path(sys.argv[1])
errors = {}
for path in sorted(folder.glob("*.keras")):
    try:
        model = keras.saving.load_model(path, safe_mode=True)
        inputs = dict(np.load(path.with_suffix(".inputs.npz")))
        outputs = keras.tree.flatten(model(inputs, training=False))
        np.savez(path.with_suffix(".outputs.npz"), *map(keras.ops.convert_to_numpy, outputs))
    except Exception as error:
        errors[path.stem] = f"{type(error).__name__}: {error}"
(folder / "errors.json").write_text(json.dumps(errors))
"""


def load_elsewhere(folder: pathlib.Path, package: str) -> dict[str, str]:
    """Runs the models of a folder in a fresh process that knows a package; returns their errors.

    Beside each `NAME.keras` stand its inputs in `NAME.inputs.npz`; outputs go to
    `NAME.outputs.npz`.
    """
    run_python(LOAD.replace("{package}", package), folder)
    return json.loads((folder / "errors.json").read_text())


def run_python(code: str, *arguments, **environment) -> str:
    """What a new Python process of the project prints, by default with the backend of this one."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"KERAS_BACKEND": keras.backend.backend()} | environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-2000:]
    return done.stdout


class SavedElsewhere:
    """Models of many cases, saved here and loaded by one fresh process.

    Args:
        cases: The cases; their names must differ.
        folder: Where the files go.
    """

    def __init__(self, cases, folder: pathlib.Path):
        self.folder = folder
        self.expected = {}
        self.failed = {}
        for case in cases:
            try:
                self._save(case)
            except Exception as error:
                self.failed[case.name] = f"saving: {type(error).__name__}: {error}"
        self.failed |= load_elsewhere(folder, "keras_attn.layers")

    def _save(self, case: LayerCase) -> None:
        inputs = symbolic_inputs(case, lengths_known=False)
        model = keras.Model(inputs, case.call(built(case), inputs))
        self.expected[case.name] = arrays(model(dict(case.inputs), training=False))
        model.save(self.folder / f"{case.name}.keras")
        np.savez(self.folder / f"{case.name}.inputs.npz", **case.inputs)

    def check(self, case: LayerCase) -> None:
        """The loaded model gives the very same numbers."""
        assert case.name not in self.failed, self.failed[case.name]
        outputs = arrays_of(self.folder / f"{case.name}.outputs.npz")
        for output, e in zip(outputs.values(), self.expected[case.name], strict=True):
            np.testing.assert_array_equal(output, e)

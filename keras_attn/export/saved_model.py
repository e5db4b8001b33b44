"""Writes a task as a SavedModel: tokenizers, weights and decoding in one graph, strings in and out.

The SavedModel needs neither Keras nor this package to be run: it holds ops of TensorFlow's core and
of tensorflow-text only.
"""

import importlib.metadata
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

import keras_attn
from keras_attn.export.golden import Example, write_golden
from keras_attn.export.layout import FORMAT_VERSION, MANIFEST, existing_versions, write_json
from keras_attn.export.warmup import write_warmup
from keras_attn.tasks.serving import Servable, ServingFunction
from keras_attn.validation import UserError, require, require_positive


class _Export(tf.Module):
    """What is saved: the resources that the functions use."""

    def __init__(self, resources: Iterable[tf.Module | tf.Variable]) -> None:
        super().__init__()
        self.resources = list(resources)


def export_saved_model(
    task: Servable,
    folder: str | Path,
    jit: bool = False,
    n_best: int = 4,
    examples: Sequence[str] | None = None,
    version: int | None = None,
) -> Path:
    """Writes a task as a SavedModel under `folder/<version>/`.

    The version appears at once and complete: it is written under a temporary name beside it, and
    renamed; after a failure nothing is left behind. Beside the SavedModel, `assets.extra/` holds
    golden outputs for `verify`, computed here by the task itself, warm-up records for TensorFlow
    Serving, and a description of the export.

    Args:
        task: A task: it gives its signatures and the resources that they use.
        folder: The model's folder, in TensorFlow Serving's words its base path; may be new.
        jit: Whether the numeric core is compiled by XLA. Such a model needs a server that runs
            with `--xla_cpu_compilation_enabled`, or a GPU.
        n_best: Number of hypotheses of the `n_best` signature.
        examples: Texts for the golden outputs and warm-up records; the task's own by default.
        version: The version; the highest existing one plus 1 by default.

    Returns:
        The version folder.

    Raises:
        UserError: The version exists already, or the folder cannot be written.
    """
    require_positive(n_best=n_best)
    texts = list(task.example_texts() if examples is None else examples)
    require(
        bool(texts) and all(isinstance(text, str) for text in texts),
        "`examples` must be strings, at least one.",
        examples=examples,
    )
    functions = dict(task.serving_functions(n_best, jit=jit))
    require(bool(functions), "The task must give at least one serving function.", task=task)
    return _write_version(
        Path(folder), version, lambda path: _write(path, task, functions, texts, jit, n_best)
    )


def _write_version(folder: Path, version: int | None, write: Callable[[Path], None]) -> Path:
    """Calls `write` with a temporary folder beside the version folder, then renames it."""
    target = folder / str(_choose_version(folder, version))
    temporary = folder / f".{target.name}.{secrets.token_hex(4)}.tmp"
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    done = False
    try:
        try:
            temporary.mkdir(parents=True)
        except OSError as error:
            raise UserError(
                f"The folder to export to cannot be written: {folder}: {error.strerror}."
            ) from error
        try:
            write(temporary)
        except tf.errors.ResourceExhaustedError as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"The export cannot be written: {reason}") from error
        try:
            temporary.rename(target)
        except OSError as error:
            raise UserError(f"Version folder {target} cannot be made: {error.strerror}.") from error
        done = True
    finally:
        if not done:
            shutil.rmtree(temporary, ignore_errors=True)
            _remove_empty(created)
    return target


def _choose_version(folder: Path, version: int | None) -> int:
    if version is None:
        return max(existing_versions(folder), default=0) + 1
    require_positive(version=version)
    target = folder / str(version)
    require(
        not target.exists(), "Version folder exists already: choose another.", folder=str(target)
    )
    return version


def _remove_empty(folders: Iterable[Path]) -> None:
    for path in folders:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _write(
    path: Path,
    task: Servable,
    functions: Mapping[str, ServingFunction],
    texts: list[str],
    jit: bool,
    n_best: int,
) -> None:
    golden, warmup = [], []
    for name, function in functions.items():
        inputs = _example_inputs(function, texts)
        golden.append(_run_example(name, function, inputs))
        warmup.append((name, inputs))
        warmup.append((name, {key: array[:1] for key, array in inputs.items()}))
    module = _Export(task.resources())
    signatures = {name: _signature(function) for name, function in functions.items()}
    tf.saved_model.save(module, str(path), signatures)
    write_golden(path, golden)
    write_warmup(path, warmup)
    write_json(path / MANIFEST, _manifest(task, jit, n_best, sorted(functions)))


def _signature(function: ServingFunction) -> tf.types.experimental.ConcreteFunction:
    specs = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name=name)
        for name, spec in function.inputs.items()
    }
    return tf.function(function.function, autograph=False).get_concrete_function(**specs)


def _example_inputs(function: ServingFunction, texts: list[str]) -> dict[str, np.ndarray]:
    if function.example_inputs is not None:
        values = function.example_inputs(texts)
        require(
            set(values) == set(function.inputs),
            "Example inputs must be named as the function's inputs are.",
            inputs=sorted(function.inputs),
            examples=sorted(values),
        )
        return {name: _to_numpy(values[name]) for name in function.inputs}
    return {name: _default_example(spec, texts) for name, spec in function.inputs.items()}


def _default_example(spec: tf.TensorSpec, texts: list[str]) -> np.ndarray:
    if spec.dtype == tf.string and spec.shape.rank == 1:
        return _to_numpy(np.array(texts, object))
    return np.ones([len(texts)] + [size or 3 for size in spec.shape[1:]], spec.dtype.as_numpy_dtype)


def _run_example(name: str, function: ServingFunction, inputs: dict[str, np.ndarray]) -> Example:
    tensors = {key: tf.constant(inputs[key], spec.dtype) for key, spec in function.inputs.items()}
    try:
        outputs = function.function(**tensors)
    except tf.errors.InvalidArgumentError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"The examples do not fit the signature {name}: {reason}") from error
    return name, inputs, {key: _to_numpy(tensor) for key, tensor in outputs.items()}


def _to_numpy(value: tf.Tensor | np.ndarray) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "OSU":
        return array
    strings = np.empty(array.shape, object)
    for index, text in np.ndenumerate(array):
        strings[index] = text.encode("utf-8") if isinstance(text, str) else bytes(text)
    return strings


def _manifest(task: Servable, jit: bool, n_best: int, signatures: list[str]) -> dict:
    packages = ("keras", "tensorflow", "tensorflow-text")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {
        "format_version": FORMAT_VERSION,
        "task": task.kind,
        "jit": jit,
        "n_best": n_best,
        "signatures": signatures,
        "versions": {"keras_attn": keras_attn.__version__, **versions},
    }

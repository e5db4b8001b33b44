"""Exports a task as a SavedModel: tokenizers, weights and decoding in one graph.

The SavedModel runs without Keras and without this package: it only contains ops of TensorFlow's
core and of tensorflow-text.
"""

import contextlib
import dataclasses
import functools
import importlib.metadata
import math
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_attn
from keras_attn.export.change import Change, SignatureChange
from keras_attn.export.compaction import compact_saved_model
from keras_attn.export.golden import ROUNDING_RTOL, RTOL, Example, Golden, write_golden
from keras_attn.export.layout import write_json
from keras_attn.export.readme import write_readme
from keras_attn.export.request_checks import checked
from keras_attn.export.stored_weights import StoredWeights
from keras_attn.export.warmup import MAX_ROWS, write_warmup
from keras_attn.export_manifest import FORMAT_VERSION, MANIFEST
from keras_attn.export_precision import TOLERANCES, check_precision
from keras_attn.model_versions import version_folders
from keras_attn.ops.autodiff import forward_only
from keras_attn.ops.integer_product import (
    INEXACT,
    are_sums_exact,
    are_weights_constants,
    weights_as_constants,
)
from keras_attn.task_folders import EXPORTED_TASK
from keras_attn.tasks.base import Task
from keras_attn.tasks.exported_weights import write_places
from keras_attn.tasks.precision import in_precision
from keras_attn.tasks.serving import Servable, ServingFunction
from keras_attn.tasks.weights import require_finite
from keras_attn.validation import UserError, require, require_positive

_GRAPH_BYTES = 1.9e9  # of a protocol buffer, with room for what is not a constant


def export_saved_model(
    task: Servable,
    folder: str | Path,
    jit: bool = False,
    n_best: int = 4,
    examples: Sequence[str | bytes] | None = None,
    version: int | None = None,
    weights: str = "float32",
    only: str = "",
    tolerance: float | None = None,
    *,
    compute: str = "float32",
) -> Path:
    """Writes a task as a SavedModel under `folder/<version>/`.

    Optional signatures, such as `attention`, are left out if the model does not support them; the
    description of the export contains the reason.

    The version is written under a temporary name and then renamed, so that it appears complete;
    nothing is left after a failure. `assets.extra/` contains golden outputs of the task for
    `verify`, warm-up records for TensorFlow Serving, a description of the export, and `README.md`
    for its users.

    Args:
        task: A task, which defines its signatures and the resources that they use.
        folder: Folder of the model (TensorFlow Serving's base path); created if missing.
        jit: Whether the numeric core is compiled by XLA. Such a model needs a server that runs
            with `--xla_cpu_compilation_enabled`, or a GPU.
        n_best: Number of hypotheses of the `n_best` signature.
        examples: Texts, or images as bytes; the task's own by default. The first 32 are used for
            golden outputs and warm-up records, all of them to measure the effect of `weights`.
        version: The version; the highest existing one plus 1 by default.
        weights: Data type of the stored weights. "float16" and "bfloat16" need half of the disk
            space, "int8" a quarter (integers and a scale for each channel). Weights are converted
            to the task's dtype once per call. The effect on the outputs for the examples is
            measured and written into the description of the export.
        only: Quantizes only weights with this text in their path, such as "feed_forward"; all
            matrices by default.
        tolerance: Largest allowed change of the outputs for the examples: fraction of examples with
            a different text, label or ids, and difference of a number, relative if above 1. By
            default 0.001, 0.05 with `compute="bfloat16"`, and 0.1 with "int8". Of several answers,
            such as those of `n_best`, the first and all numbers count.
        compute: In which precision the model computes: "float32", that of the task; "bfloat16",
            with matrices stored in it; or "int8", where products with weights are of 8-bit integers
            (a scale for each output and for each row of inputs) and all else is of floats. The
            effect on the outputs is measured as that of `weights`. Integers are for x86 processors
            with VNNI, on others the model fails; they are not for `jit`.

    Returns:
        The version folder.

    Raises:
        UserError: The version exists already, the folder cannot be written, the answers to the
            examples change by more than the tolerance, or `compute` does not fit `jit`, `weights`,
            the task or this processor.

    Examples:
        >>> from keras_attn.tasks import Task
        >>> films = [("good film", "good"), ("bad film", "bad"), ("fine", "good"), ("dull", "bad")]
        >>> task = Task.from_preset("encoder_tiny", films, task="classification")
        >>> print(export_saved_model(task, "exported/films"))
        exported/films/1
    """
    check_precision(compute, weights, only, jit)
    require(compute != "int8" or are_sums_exact(), INEXACT, compute=compute)
    require_positive(n_best=n_best)
    weights = "bfloat16" if compute == "bfloat16" else weights
    tolerance = TOLERANCES[compute] if tolerance is None else tolerance
    require(
        0 <= tolerance < math.inf,
        "`tolerance` must be a finite number of at least 0.",
        tolerance=tolerance,
    )
    texts = list(task.example_texts() if examples is None else examples)
    require(
        bool(texts) and all(isinstance(text, str | bytes) for text in texts),
        "`examples` must be a list of strings that is not empty.",
        examples=examples,
    )
    functions = dict(task.serving_functions(n_best, jit=jit))
    require(bool(functions), "The task must have at least one serving function.", task=task)
    options = {"jit": jit, "n_best": n_best, "compute": compute}
    computing: Any = task
    is_rounded = compute != "float32"
    if is_rounded:
        computing = in_precision(computing, compute)
    computed = dict(computing.serving_functions(n_best, jit=jit)) if is_rounded else functions

    def write(path: Path) -> None:
        resources = list(computing.resources())
        require_finite(each for each in resources if isinstance(each, tf.Variable | keras.Variable))
        stored = StoredWeights(resources, weights, only, computing=compute == "bfloat16")
        reading = {
            name: dataclasses.replace(each, function=stored.reading(each.function))
            for name, each in computed.items()
        }
        if compute == "int8":
            _require_room(stored, sum(not each.optional for each in computed.values()))
        with weights_as_constants(compute == "int8"):
            signatures, left_out = _signatures(reading)
            served = {name: reading[name] for name in signatures}
            if is_rounded:  # operations by themselves round otherwise than in a graph
                served = {
                    name: dataclasses.replace(each, function=signatures[name])
                    for name, each in served.items()
                }
            examples = _answers(served, texts[:MAX_ROWS])
            compared = functions if is_rounded or stored.smaller else {}
            described = _describe_weights(compared, served, texts, stored, examples, tolerance)
        described = {"weights": described, "left_out": left_out}
        golden = Golden(examples, ROUNDING_RTOL if is_rounded else RTOL)
        _write(path, computing, signatures, stored, golden, options | described)
        write_readme(path, Path(folder).resolve().name)

    return _write_version(Path(folder), version, write)


def _require_room(stored: StoredWeights, signatures: int) -> None:
    """Raises where the constants of all signatures might not fit into a graph."""
    size = _sizes(stored)["bytes"] * signatures
    require(
        size < _GRAPH_BYTES,
        "A graph holds at most 2 GB, and each signature has the integers as constants: store them "
        "with `weights` instead, and compute in floats.",
        compute="int8",
        bytes=size,
    )


def _write_version(folder: Path, version: int | None, write: Callable[[Path], None]) -> Path:
    """Calls `write` with a temporary folder beside the version folder, then renames it."""
    target = folder / str(_choose_version(folder, version))
    temporary = folder / f".{target.name}.{secrets.token_hex(4)}.tmp"
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with _refused(f"The export folder {folder} cannot be written", OSError):
            temporary.mkdir(parents=True)
        with _refused(f"The export {target} cannot be written", tf.errors.ResourceExhaustedError):
            write(temporary)
        with _refused(f"The version folder {target} cannot be created", OSError):
            temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_empty(created)
        raise
    return target


@contextlib.contextmanager
def _refused(message: str, kind: type[Exception]) -> Iterator[None]:
    """Makes a `UserError` of an error, with its reason."""
    try:
        yield
    except kind as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UserError(f"{message}: {reason.removesuffix('.')}.") from error


def _choose_version(folder: Path, version: int | None) -> int:
    if version is None:
        version = max(version_folders(folder), default=0) + 1
    require_positive(version=version)
    target = folder / str(version)
    require(
        not target.exists(),
        "The version folder exists already; choose another version.",
        folder=str(target),
    )
    return version


def _remove_empty(folders: Iterable[Path]) -> None:
    for path in folders:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@contextlib.contextmanager
def _without_remarks() -> Iterator[None]:
    """Hides a line of TensorFlow about the folder, which has a temporary name."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)


def _write(
    path: Path,
    task: Servable,
    signatures: Mapping[str, Callable],
    stored: StoredWeights,
    golden: Golden,
    options: Mapping[str, Any],
) -> None:
    module = tf.Module()
    module.resources = stored.resources
    with _without_remarks():
        tf.saved_model.save(module, str(path), signatures)
    compact_saved_model(path)
    if isinstance(task, Task):
        _write_task(path / EXPORTED_TASK, task, stored)
    write_golden(path, golden)
    inputs = [(name, given) for name, given, _ in golden.examples]
    one_row = [(name, {key: array[:1] for key, array in given.items()}) for name, given in inputs]
    write_warmup(path, inputs + one_row)
    packages = ("keras", "tensorflow", "tensorflow-text")
    versions = {name: importlib.metadata.version(name) for name in packages}
    manifest = {
        "format_version": FORMAT_VERSION,
        "task": task.kind,
        **options,
        "signatures": sorted(signatures),
        "versions": {"keras_attn": keras_attn.__version__, **versions},
    }
    write_json(path / MANIFEST, manifest)


def _write_task(folder: Path, task: Task, stored: StoredWeights) -> None:
    """Writes the task of an export, whose weights are the variables of the SavedModel."""
    folder.mkdir(parents=True)
    task.write_description(folder)
    paths = [weight.path for weight in task.backbone.weights]
    write_places(folder, {path: f"resources/{stored.places[path]}" for path in paths})


def _signatures(
    functions: Mapping[str, ServingFunction],
) -> tuple[dict[str, Callable], dict[str, str]]:
    """Traced functions, and the reasons for leaving out optional ones that cannot be traced."""
    signatures: dict[str, Callable] = {}
    left_out = {}
    for name, function in functions.items():
        # Constants of their own would be most of a graph; to look at attention may take longer.
        constants = weights_as_constants(are_weights_constants() and not function.optional)
        try:
            with constants:
                signatures[name] = _signature(function)
        except (TypeError, ValueError) as error:  # any kind of layer may be inside
            if not function.optional:
                raise
            left_out[name] = _reason(error)
    return signatures, left_out


def _reason(error: Exception) -> str:
    """The message of an error in one line, without the text that Keras adds."""
    text = str(error)
    bold = re.search(r"(?s)\x1b\[1m(.*?)\x1b\[0m", text)
    return " ".join((bold[1] if bold else text).split())


def _describe_weights(
    functions: Mapping[str, ServingFunction],
    served: Mapping[str, ServingFunction],
    texts: list[str | bytes],
    stored: StoredWeights,
    examples: list[Example],
    tolerance: float,
) -> dict[str, Any]:
    """Describes the stored weights, and the change of the outputs for examples and texts.

    `functions` use the task's own weights, `served` the stored ones. Optional functions are not
    compared, and nothing is where there are no `functions`.

    Raises:
        UserError: The outputs change by more than the tolerance.
    """
    if not functions:
        return {"dtype": stored.dtype}
    sizes = _sizes(stored)
    answering = {name: each for name, each in served.items() if not each.optional}
    change = Change(len(texts), {name: SignatureChange() for name in answering})

    def compare(answered: list[Example], functions: Mapping[str, ServingFunction]) -> None:
        for name, inputs, received in answered:
            outputs = _run(name, functions[name], inputs), received
            compared = functions[name].compared or (lambda unchanged: unchanged)
            change.signatures[name].add(*map(compared, outputs))

    compare([example for example in examples if example[0] in answering], functions)
    others = [texts[begin : begin + MAX_ROWS] for begin in range(MAX_ROWS, len(texts), MAX_ROWS)]
    if others:
        # Traced functions are many times faster than eager ones.
        before = {name: _traced(functions[name]) for name in answering}
        after = {name: _traced(each) for name, each in answering.items()}
        for batch in others:
            compare(_answers(after, batch), before)
    change.require_within(tolerance, weights=sizes["dtype"])
    return sizes | {"tolerance": tolerance, "change": change.describe()}


def _sizes(stored: StoredWeights) -> dict[str, Any]:
    """How many weights are smaller than in the task, and their bytes before and after."""
    if stored.smaller:
        return {
            "dtype": stored.dtype,
            "smaller": len(stored.smaller),
            "bytes_before": sum(_bytes(weight.value) for weight, _ in stored.smaller),
            "bytes": sum(_bytes(part) for _, weight in stored.smaller for part in weight.variables),
        }
    sizes = [
        _bytes(weight)
        for weight in stored.resources
        if isinstance(weight, tf.Variable) and weight.dtype == tf.int8
    ]
    return {
        "dtype": "int8",
        "smaller": len(sizes),
        "bytes_before": 4 * sum(sizes),
        "bytes": sum(sizes),
    }


def _bytes(variable: tf.Variable) -> int:
    return variable.dtype.size * variable.shape.num_elements()


def _traced(function: ServingFunction) -> ServingFunction:
    """Traces a function into a graph."""
    return dataclasses.replace(function, function=_signature(function))


def _signature(function: ServingFunction) -> tf.types.experimental.ConcreteFunction:
    specs = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name=name)
        for name, spec in function.inputs.items()
    }
    traced = tf.function(functools.partial(checked, function), autograph=False)
    with forward_only():
        return traced.get_concrete_function(**specs)


def _example_inputs(function: ServingFunction, texts: list[str | bytes]) -> dict[str, np.ndarray]:
    if function.example_inputs is not None:
        values = function.example_inputs(texts)
        require(
            set(values) == set(function.inputs),
            "Example inputs must have the names of the function's inputs.",
            inputs=sorted(function.inputs),
            examples=sorted(values),
        )
        return {name: _to_numpy(values[name]) for name in function.inputs}
    return {name: _default_example(spec, texts) for name, spec in function.inputs.items()}


def _default_example(spec: tf.TensorSpec, texts: list[str | bytes]) -> np.ndarray:
    if spec.dtype == tf.string and spec.shape.rank == 1:
        return _to_numpy(np.array(texts, object))
    return np.ones([len(texts)] + [size or 3 for size in spec.shape[1:]], spec.dtype.as_numpy_dtype)


def _answers(functions: Mapping[str, ServingFunction], texts: list[str | bytes]) -> list[Example]:
    """Example inputs and outputs of each function."""
    found = []
    for name, function in functions.items():
        inputs = _example_inputs(function, texts)
        found.append((name, inputs, _run(name, function, inputs)))
    return found


def _run(
    name: str, function: ServingFunction, inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    tensors = {key: tf.constant(inputs[key], spec.dtype) for key, spec in function.inputs.items()}
    try:
        outputs = function.function(**tensors)
    except tf.errors.InvalidArgumentError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"The examples do not fit the signature {name}: {reason}") from error
    return {key: _to_numpy(tensor) for key, tensor in outputs.items()}


def _to_numpy(value: tf.Tensor | np.ndarray | list[str] | list[bytes]) -> np.ndarray:
    is_texts = isinstance(value, list) and all(isinstance(text, str | bytes) for text in value)
    # NumPy does not recognize `ImageFile`, a subclass of bytes, as bytes.
    array = np.array(value, object) if is_texts else np.asarray(value)
    if array.dtype.kind not in "OSU":
        return array
    strings = np.empty(array.shape, object)
    for index, text in np.ndenumerate(array):
        strings[index] = text.encode("utf-8") if isinstance(text, str) else bytes(text)
    return strings

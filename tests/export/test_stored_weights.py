"""Weights stored in less room: the same answers or nearly, read once a call."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.export.golden import read_golden
from keras_attn.export.layout import README
from keras_attn.tasks import Seq2SeqTask, Task
from tests.export.toy import ToyTask, removed, truncated, verified
from tests.refusals import message_of, refused, refused_in_one_line
from tests.tasks.made import TEXTS, assert_answers, make_task

HALVES = {"float16": np.float16, "bfloat16": tf.bfloat16.as_numpy_dtype}


def export(task, folder, dtype, examples=TEXTS, **options):
    n_best = min(2, task.decoding.beams)
    return export_saved_model(
        task, folder, n_best=n_best, examples=examples, weights=dtype, **options
    )


def rounded_task(dtype):
    """The made task with matrices that the dtype holds exactly."""
    task = make_task()
    for weight in matrices(task):
        weight.assign(weight.numpy().astype(HALVES[dtype]).astype(np.float32))
    return task


def matrices(task):
    return [weight for weight in task.backbone.variables if len(weight.shape) > 1]


def bits(task):
    return {weight.path: weight.numpy().tobytes() for weight in task.backbone.variables}


class Exported(NamedTuple):
    task: Seq2SeqTask
    bits: dict
    hypotheses: list
    folder: Path


def exported_from(task, folder, dtype):
    """The task, what it was before, and its export."""
    before = bits(task), task.predict_n_best(TEXTS, 2)
    return Exported(task, *before, export(task, folder, dtype))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return exported_from(make_task(), tmp_path_factory.mktemp("float16"), "float16")


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """Matrices that bfloat16 holds exactly."""
    folder = tmp_path_factory.mktemp("bfloat16")
    return exported_from(rounded_task("bfloat16"), folder, "bfloat16")


@pytest.fixture(params=["float16", pytest.param("bfloat16", marks=pytest.mark.slow)])
def either(request):
    """An export, and the dtype of its matrices."""
    name = {"float16": "exported", "bfloat16": "exact"}[request.param]
    return request.getfixturevalue(name), request.param


def stored_bytes(folder):
    """Bytes of the weights by dtype, as the checkpoint's index says."""
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    dtypes, found = reader.get_variable_to_dtype_map(), {}
    for name, shape in reader.get_variable_to_shape_map().items():
        if name.startswith("resources/"):
            dtype = dtypes[name]
            found[dtype.name] = found.get(dtype.name, 0) + dtype.size * int(np.prod(shape))
    return found


def test_matrices_take_half_the_room_and_are_written_once(either):
    (task, *_, folder), dtype = either
    expected = {dtype: 0}
    for weight in task.backbone.variables:
        array = weight.numpy()
        if array.ndim > 1:
            expected[dtype] += array.nbytes // 2
        else:
            expected[array.dtype.name] = expected.get(array.dtype.name, 0) + array.nbytes
    assert expected[dtype] > expected["float32"] > 0
    assert stored_bytes(folder) == expected


@pytest.mark.slow
def test_the_cpp_runtime_answers_what_the_task_answers(exported):
    verified(exported.folder)
    with CppSavedModel(exported.folder) as model:
        outputs = model.run("n_best", {"text": TEXTS})
    assert_answers(outputs, exported.hypotheses, rtol=1e-3)


def test_only_storing_loses_digits_not_computing(exported):
    """The judge is a task whose matrices NumPy rounded; what computes in half differs by more."""
    rounded = rounded_task("float16")
    targets = [row[0].text for row in exported.hypotheses]
    with CppSavedModel(exported.folder) as model:
        outputs = model.run("score", {"text": TEXTS, "target": targets})
    scores = rounded.score(TEXTS, targets)
    np.testing.assert_allclose(outputs["log_probability"], scores, rtol=5e-6)
    assert np.abs(np.divide(scores, exported.task.score(TEXTS, targets)) - 1).max() > 2e-5


def test_the_task_stays_as_it_was(either):
    (task, before, hypotheses, _), _ = either
    assert bits(task) == before
    task._functions.clear()  # traced anew
    assert task.predict_n_best(TEXTS, 2) == hypotheses


def functions_of(folder):
    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    [meta_graph] = saved.meta_graphs
    return {function.signature.name: function for function in meta_graph.graph_def.library.function}


def called_by(node):
    for value in node.attr.values():
        yield from (function.name for function in (value.func, *value.list.func) if function.name)


def inside_loops(functions):
    """Names of the functions that loops run, and of those that these call."""
    waiting = [
        name
        for function in functions.values()
        for node in function.node_def
        if node.op in ("While", "StatelessWhile")
        for name in called_by(node)
    ]
    found = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [called for node in functions[name].node_def for called in called_by(node)]
    return found


def casts_from(dtype, function):
    return [
        node.name
        for node in function.node_def
        if node.op == "Cast" and node.attr["SrcT"].type == tf.as_dtype(dtype).as_datatype_enum
    ]


def casts(folder, dtype):
    """Number of casts from a dtype outside of loops and inside."""
    functions = functions_of(folder)
    loops = inside_loops(functions)
    assert loops
    counts = {True: 0, False: 0}
    for name, function in functions.items():
        counts[name in loops] += len(casts_from(dtype, function))
    return counts[False], counts[True]


def test_weights_are_cast_once_a_call_and_never_in_a_loop(either):
    (task, *_, folder), dtype = either
    assert casts(folder, dtype) == (len(matrices(task)) * len(task.serving_functions(2)), 0)


def test_a_cast_in_a_loop_would_be_seen(tmp_path):
    module = tf.Module()
    module.half = tf.Variable(tf.ones([3, 3], tf.float16))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "rows")])
    def run(rows):
        return {"rows": tf.while_loop(lambda _: True, step, [rows], maximum_iterations=2)[0]}

    def step(rows):
        return [tf.cond(rows[0, 0] > 0, lambda: multiply(rows), lambda: rows)]

    multiply = tf.function(lambda rows: rows @ tf.cast(module.half, tf.float32))
    tf.saved_model.save(module, str(tmp_path), {"serving_default": run})
    assert casts(tmp_path, "float16") == (0, 1)


def description(folder):
    return json.loads((folder / "assets.extra" / "keras_attn.json").read_text())["weights"]


def changes(folder):
    return description(folder)["change"]["signatures"]


def test_the_measured_change_is_described(exported):
    """The judge is the runtime, against what the task itself answers."""
    stored = description(exported.folder)
    sizes = [weight.numpy().nbytes for weight in matrices(exported.task)]
    expected = {"bytes_before": sum(sizes), "bytes": sum(sizes) // 2, "smaller": len(sizes)}
    assert stored["dtype"] == "float16"
    assert {name: stored[name] for name in expected} == expected
    assert stored["change"]["examples"] == len(TEXTS)
    expected = np.array([[h.score for h in row] for row in exported.hypotheses])
    with CppSavedModel(exported.folder) as model:
        received = np.float64(model.run("n_best", {"text": TEXTS})["score"])
    largest = np.max(np.abs(received - expected) / np.maximum(np.abs(expected), 1))
    change = changes(exported.folder)["n_best"]
    assert change["changed"] == 0
    assert "attention" not in changes(exported.folder)  # which is no answer
    assert 1e-5 < largest < change["largest_difference"] + 1e-6 < 1e-3


@pytest.mark.slow
def test_weights_that_half_precision_holds_change_nothing(exact):
    for change in changes(exact.folder).values():
        assert change == {"changed": 0, "largest_difference": pytest.approx(0, abs=5e-6)}


def test_golden_outputs_are_those_of_a_task_with_what_is_stored(exported):
    examples, rtol = read_golden(exported.folder)
    assert rtol == 1e-4
    [outputs] = [outputs for name, _, outputs in examples if name == "n_best"]
    expected = [[h.score for h in row] for row in rounded_task("float16").predict_n_best(TEXTS, 2)]
    np.testing.assert_allclose(outputs["score"], expected, rtol=5e-6)


@pytest.mark.slow
def test_scores_that_change_too_much_are_refused(tmp_path):
    """bfloat16 keeps eight bits, and this task's scores then change in the third digit."""
    arguments = (make_task(seed=1), tmp_path / "new" / "g2p", "bfloat16", ["", "abc"])
    message = refused_in_one_line("change the task's outputs by more than", export, *arguments)
    assert "Received: weights='bfloat16', tolerance=0.001." in message
    assert "changes 0 of 2 answers, and numbers by up to 0.0" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_text_that_changes_is_refused(tmp_path):
    """Two tokens so alike that half precision cannot tell them apart, nor the scores."""
    task = make_task(beams=1, min_length=2)
    words = task.target_tokenizer.vocabulary
    best = words.index(task.predict(["abc"])[0].split()[0])
    embeddings = task.backbone.target_embedding.embeddings.numpy()
    twin = len(embeddings) - 1
    assert best < twin
    embeddings[best] = embeddings[best].astype(np.float16)
    embeddings[twin] = embeddings[best] * np.float32(1 + 2**-13)
    task.backbone.target_embedding.embeddings.assign(embeddings)
    assert words[twin] in task.predict(["abc"])[0].split()
    message = message_of(export, task, tmp_path, "float16", ["abc"])
    assert "serving_default changes 1 of 1 answers, and numbers by up to 0;" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_weights_beyond_the_range_are_refused(tmp_path):
    task = make_task(beams=1)
    kernel = task.backbone.encoder_blocks[0].variables[0]
    assert len(kernel.shape) == 2
    kernel.assign(kernel.numpy() * 1e6)
    refused("weights='float16'", export, task, tmp_path, "float16", examples=["abc"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_compiled_by_xla_it_computes_in_full_precision_too(tmp_path):
    folder = export(make_task(), tmp_path, "float16", jit=True)
    assert max(change["largest_difference"] for change in changes(folder).values()) < 1e-3
    verified(folder)


@pytest.mark.parametrize(
    ("make", "dtype", "message"),
    [
        (make_task, "half", "`weights` must be one of.*Received: weights='half'"),
        (ToyTask, "float16", "can be quantized; the task has none.*Received: weights='float16'"),
        (make_task, "float16", "with 'no such path' in its path. Received: weights='float16'"),
    ],
)
def test_mistakes(tmp_path, make, dtype, message):
    options = {"n_best": 1, "weights": dtype, "only": "no such path"}
    refused(message, export_saved_model, make(), tmp_path / "new", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_some_matrices_take_half_the_room(tmp_path):
    task = make_task()
    folder = export(task, tmp_path / "g2p", "float16", only="feed_forward")
    kernels = [weight for weight in matrices(task) if "feed_forward" in weight.path]
    assert description(folder)["smaller"] == len(kernels) > 0
    stored = stored_bytes(folder)
    assert stored["float16"] == sum(weight.numpy().nbytes for weight in kernels) // 2
    every = sum(weight.numpy().nbytes for weight in task.backbone.variables)
    assert sum(stored.values()) == every - stored["float16"]
    verified(folder)


def quantized(array):
    """By NumPy alone: for each row, or each column, 255 numbers as far apart as it needs."""
    found = []
    for axis in (array.ndim - 1, 0):
        restored = []
        for channel in np.moveaxis(array, axis, 0):
            scale = np.abs(channel).max() / 127
            numbers = np.round(channel / scale)
            assert np.abs(numbers).max() == 127
            restored.append(numbers * scale)
        found.append(np.moveaxis(np.stack(restored), 0, axis))
    return min(found, key=lambda restored: np.sum((restored - array) ** 2))


@pytest.fixture(scope="module")
def eighths(tmp_path_factory):
    """An export in int8, whatever that changes."""
    folder = tmp_path_factory.mktemp("int8")
    return export(make_task(), folder, "int8", tolerance=1.0)


@pytest.mark.slow
def test_whole_numbers_take_a_quarter_of_the_room(eighths):
    stored = stored_bytes(eighths)
    assert stored["int8"] == sum(weight.numpy().size for weight in matrices(make_task()))
    described = description(eighths)
    assert described["bytes_before"] == 4 * stored["int8"]
    assert stored["int8"] < described["bytes"] < stored["int8"] + stored["float32"]


@pytest.mark.slow
def test_the_page_beside_the_model_tells_the_change(eighths):
    page = (eighths / README).read_text("utf-8")
    described = description(eighths)
    before, after = described["bytes_before"] / 2**20, described["bytes"] / 2**20
    assert f"weights are stored in int8, in {after:.3g} MiB instead of {before:.3g}" in page
    change = changes(eighths)["score"]
    largest = f"{change['largest_difference']:.2g}"
    assert f"| `score` | {change['changed']} | {largest} |" in page.splitlines()


@pytest.mark.slow
def test_whole_numbers_and_scales_are_what_is_computed_with(eighths):
    """The judge is a task whose matrices NumPy brought to so many steps, in the runtime."""
    task = make_task()
    for weight in matrices(task):
        weight.assign(quantized(weight.numpy()))
    verified(eighths)
    targets = ["AA B", "", "CH", "D EH", "AA", "B B", "EH"]
    with CppSavedModel(eighths) as model:
        outputs = model.run("score", {"text": TEXTS, "target": targets})
    np.testing.assert_allclose(outputs["log_probability"], task.score(TEXTS, targets), rtol=1e-5)


@pytest.mark.slow
def test_whole_numbers_are_read_once_a_call(eighths):
    task = make_task()
    assert casts(eighths, "int8") == (len(matrices(task)) * len(task.serving_functions(2)), 0)


def test_how_much_may_change_is_the_users_choice(eighths, tmp_path):
    largest = max(change["largest_difference"] for change in changes(eighths).values())
    assert 1e-3 < largest < 0.2
    arguments = (make_task(beams=1), tmp_path, "int8", ["abc", "fedcba"])
    refused("Received: weights='int8', tolerance=0.001", export, *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_change_is_measured_on_all_examples(tmp_path):
    task = make_task(beams=1, max_length=2)
    folder = export(task, tmp_path, "int8", examples=["abc", "d", "fed"] * 12, tolerance=1.0)
    assert description(folder)["change"]["examples"] == 36


def test_the_task_of_an_export_has_the_stored_weights(either):
    (task, *_, folder), dtype = either
    loaded = Task.load(folder.parent)  # of the highest version
    assert (loaded.kind, loaded.decoding) == (task.kind, task.decoding)
    for weight, found in zip(task.backbone.weights, loaded.backbone.weights, strict=True):
        expected = weight.numpy()
        if expected.ndim > 1:
            expected = expected.astype(HALVES[dtype]).astype(np.float32)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_whole_numbers_are_scaled_again(eighths):
    for weight, found in zip(
        make_task().backbone.weights, Task.load(eighths).backbone.weights, strict=True
    ):
        expected, found = weight.numpy(), found.numpy()
        half_a_step = np.abs(expected).max() / 127 / 2 if expected.ndim > 1 else 0
        np.testing.assert_allclose(found, expected, atol=1.001 * half_a_step, rtol=0)
    assert not np.array_equal(found, expected) or expected.ndim == 1


TASK = Path("assets.extra", "task")
EMBEDDING = "source_embedding/embeddings"


def changed(change):
    """Writes other places of the weights."""

    def write(folder):
        path = folder / TASK / "exported_weights.json"
        places = json.loads(path.read_text())
        path.write_text(json.dumps(change(places)))

    return write


def renamed(old, new):
    return changed(lambda places: {key.replace(old, new): place for key, place in places.items()})


def backwards(places):
    return dict(reversed(places.items()))


@pytest.mark.parametrize(
    "change",
    [changed(backwards), renamed("/attention/", "/attention_12/")],
    ids=["another order", "numbers of layers without a name"],
)
def test_weights_are_found_by_name_or_else_in_order(exported, tmp_path, change):
    folder = shutil.copytree(exported.folder, tmp_path / "1")
    change(folder)
    expected, found = (Task.load(each).backbone.weights for each in (exported.folder, folder))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (renamed(EMBEDDING, "other/kernel"), "is of another model: the model has no other/kernel."),
        (
            changed(lambda places: {k: v for k, v in places.items() if k != EMBEDDING}),
            f"is of another model: it lacks {EMBEDDING}.",
        ),
        (
            changed(lambda places: places | {EMBEDDING: places["target_embedding/embeddings"]}),
            f"is of another model: {EMBEDDING} must be of shape",
        ),
        (
            changed(lambda places: places | {EMBEDDING: "resources/999"}),
            "is damaged: there is no variable. Received: place='resources/999'.",
        ),
        (truncated("variables/variables.data-00000-of-00001", 6000), "is damaged: "),
        (removed("variables"), "is damaged: "),
        (removed(TASK / "exported_weights.json"), "no such file."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_weights_of_an_export_are_refused(exported, tmp_path, damage, message):
    folder = shutil.copytree(exported.folder, tmp_path / "1")
    damage(folder)
    refused_in_one_line(message, Task.load, folder)


def test_nothing_is_saved_into_an_export(exported):
    refused("must be new, empty or contain only a task.", exported.task.save, exported.folder)
    refused(
        "must be new, empty or contain only a task.", exported.task.save, exported.folder / TASK
    )

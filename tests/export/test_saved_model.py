import dataclasses
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.export.golden import read_golden
from keras_attn.export.runtime import read_meta_graph
from keras_attn.export.warmup import read_warmup
from keras_attn.ops.blockwise.either import either
from keras_attn.tasks.serving import ServingFunction
from tests.export.toy import LETTERS, ToyTask, expected
from tests.harness import run_python
from tests.refusals import refused, refused_in_one_line


def test_the_description_has_no_clock_and_no_path(toy_model):
    manifest = json.loads((toy_model / "assets.extra" / "keras_attn.json").read_text())
    versions = manifest.pop("versions")
    assert manifest == {
        "format_version": 1,
        "task": "toy",
        "jit": False,
        "n_best": 2,
        "compute": "float32",
        "weights": {"dtype": "float32"},
        "left_out": {},
        "signatures": ["serving_default", "token_ids"],
    }
    assert sorted(versions) == ["keras", "keras_attn", "tensorflow", "tensorflow-text"]
    assert versions["tensorflow"] == tf.__version__


def test_golden_outputs_are_the_tasks(toy_model):
    examples = {name: arrays for name, *arrays in read_golden(toy_model).examples}
    texts = ["abc", "e", "aéb"]
    inputs, outputs = examples["serving_default"]
    assert [text.decode() for text in inputs["text"]] == texts
    answers = [expected(text) for text in texts]
    assert [text.decode() for text in outputs["text"]] == [text for text, _ in answers]
    assert outputs["score"].tolist() == [score for _, score in answers]
    inputs, outputs = examples["token_ids"]
    assert inputs["token_ids"].tolist() == [[4, 5, 6], [8, 0, 0], [4, 3, 5]]
    assert outputs["scores"].tolist() == [[score, score] for _, score in answers]


def test_warm_up_has_one_row_and_all_rows_of_each_signature(toy_model):
    rows = [(name, *map(len, inputs.values())) for name, inputs in read_warmup(toy_model)]
    assert sorted(rows) == [(name, n) for name in ("serving_default", "token_ids") for n in (1, 3)]


def test_a_server_that_makes_batches_takes_the_warm_up(tmp_path):
    """It refuses requests of more rows than its batches have."""
    version = export_saved_model(ToyTask(), tmp_path, examples=["abc", "d"] * 20)
    rows = {len(next(iter(inputs.values()))) for _, inputs in read_warmup(version)}
    assert rows == {1, 32}
    assert {len(inputs["text"]) for _, inputs, _ in read_golden(version).examples[:1]} == {32}


def test_weights_are_written_once(toy_model):
    # 9 weights of 4 bytes, and the bookkeeping of a checkpoint.
    names = [name for name, _ in tf.train.list_variables(str(toy_model / "variables/variables"))]
    weights = [name for name in names if "weights" in name or "resources" in name]
    assert weights == ["resources/2/.ATTRIBUTES/VARIABLE_VALUE"]


def test_it_runs_in_python_without_this_package(toy_model):
    code = (
        "import sys, tensorflow as tf\n"
        f"model = tf.saved_model.load({str(toy_model)!r})\n"
        "outputs = model.signatures['serving_default'](text=tf.constant(['dab']))\n"
        "print(outputs['text'].numpy()[0].decode(), float(outputs['score'][0]))\n"
        "print([name for name in sys.modules if name.startswith('keras_attn')])\n"
    )
    # 7 + 2 + 3 a step
    assert run_python(code).splitlines() == ["dddaaabbb 36.0", "[]"]


class Twice(ToyTask):
    """Whose graph has a custom gradient, as long texts in windows have it."""

    def _core(self, ids):
        score = super()._core(ids)
        is_long = tf.shape(ids)[1] > 3
        return either(is_long, lambda x: 2 * x, lambda x: x + x, {"x": score})


def test_custom_gradients_are_left_out(tmp_path):
    """TensorFlow warns of them when it loads a SavedModel."""
    graph = read_meta_graph(export_saved_model(Twice(), tmp_path / "twice")).graph_def
    nodes = [node for function in graph.library.function for node in function.node_def]
    assert any(node.op == "If" or node.op == "StatelessIf" for node in nodes)
    assert not any("_gradient_op_type" in node.attr for node in nodes)


def test_versions_count_up(tmp_path):
    folder = tmp_path / "new" / "toy"
    assert export_saved_model(ToyTask(), folder) == folder / "1"
    assert export_saved_model(ToyTask(), folder, version=41) == folder / "41"
    (folder / "99-notes").mkdir()
    assert export_saved_model(ToyTask(), folder) == folder / "42"
    assert sorted(path.name for path in folder.iterdir()) == ["1", "41", "42", "99-notes"]
    assert CppSavedModel(folder).folder == folder / "42"


def test_a_version_folder_can_be_read_by_the_servers_user(tmp_path):
    before = os.umask(0o022)
    try:
        version = export_saved_model(ToyTask(), tmp_path)
    finally:
        os.umask(before)
    assert version.stat().st_mode & 0o777 == 0o755


def test_the_default_examples_fit_every_signature(tmp_path):
    @dataclasses.dataclass
    class Plain:
        task: ToyTask
        kind: str = "plain"

        def example_texts(self):
            return self.task.example_texts()

        def serving_functions(self, n_best, jit=False):
            functions = self.task.serving_functions(n_best, jit)
            return {
                name: dataclasses.replace(function, example_inputs=None)
                for name, function in functions.items()
            }

        def resources(self):
            return self.task.resources()

    version = export_saved_model(Plain(ToyTask()), tmp_path)
    inputs = {name: inputs for name, inputs, _ in read_golden(version).examples}
    texts = [text.decode() for text in inputs["serving_default"]["text"]]
    assert len(set(map(len, texts))) == len(texts) > 1
    assert inputs["token_ids"]["token_ids"].tolist() == np.ones((len(texts), 3)).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": 7}, "exists already.*/7'"),
        ({"version": 0}, "`version` must be a positive integer.*version=0"),
        ({"n_best": 0}, "`n_best` must be a positive integer.*n_best=0"),
        ({"examples": []}, r"`examples` must be a list of strings.*examples=\[\]"),
        ({"tolerance": float("nan")}, "`tolerance` must be a finite number.*tolerance=nan"),
        ({"examples": [5]}, r"`examples` must be a list of strings.*examples=\[5\]"),
    ],
)
def test_mistakes_leave_the_folder_as_it_was(tmp_path, options, message):
    (tmp_path / "7").mkdir()
    refused(message, export_saved_model, ToyTask(), tmp_path, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["7"]
    assert list((tmp_path / "7").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    message = "/file/toy cannot be written: Not a directory"
    refused_in_one_line(message, export_saved_model, ToyTask(), file / "toy")


class _Failing(ToyTask):
    """Works for the golden outputs, which are computed eagerly, and fails when it is traced."""

    def __init__(self, when):
        super().__init__()
        self.when = when

    def serving_functions(self, n_best, jit=False):
        functions = super().serving_functions(n_best, jit)

        def failing(text):
            if tf.executing_eagerly() == (self.when == "eager"):
                raise RuntimeError(f"fails when {self.when}")
            return functions["serving_default"].function(text)

        inputs = functions["serving_default"].inputs
        return {**functions, "serving_default": ServingFunction(failing, inputs)}


@pytest.mark.parametrize("when", ["eager", "traced"])
def test_a_failing_function_leaves_nothing_behind(tmp_path, when):
    with pytest.raises(RuntimeError, match=f"fails when {when}"):
        export_saved_model(_Failing(when), tmp_path / "new" / "toy")
    assert list(tmp_path.iterdir()) == []
    kept = export_saved_model(ToyTask(), tmp_path / "toy")
    with pytest.raises(RuntimeError, match=f"fails when {when}"):
        export_saved_model(_Failing(when), tmp_path / "toy")
    assert list((tmp_path / "toy").iterdir()) == [kept]


def test_the_version_appears_complete(tmp_path, monkeypatch):
    seen = []
    original = type(tmp_path).rename

    def rename(self, target):
        if target.parent == tmp_path:
            seen.append((target.exists(), sorted(path.name for path in self.rglob("*.json"))))
        return original(self, target)

    monkeypatch.setattr(type(tmp_path), "rename", rename)
    export_saved_model(ToyTask(), tmp_path)
    assert seen == [(False, ["golden.json", "keras_attn.json"])]


def test_of_two_exports_at_once_the_later_gives_way(tmp_path):
    class Overtaken(ToyTask):
        def resources(self):
            export_saved_model(ToyTask(), tmp_path)
            return super().resources()

    message = "The version folder .*/1 cannot be created: "
    refused(message, export_saved_model, Overtaken(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]
    assert (tmp_path / "1" / "saved_model.pb").is_file()


def test_example_inputs_must_be_named_as_the_inputs(tmp_path):
    class Misnamed(ToyTask):
        def serving_functions(self, n_best, jit=False):
            function = super().serving_functions(n_best, jit)["token_ids"]
            examples = {"ids": [[len(LETTERS)]]}
            return {"token_ids": dataclasses.replace(function, example_inputs=lambda _: examples)}

    message = r"inputs=\['token_ids'\], examples=\['ids'\]"
    refused(message, export_saved_model, Misnamed(), tmp_path / "toy")

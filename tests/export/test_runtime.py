import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import CppSavedModel, SavedModelError, c_api
from keras_attn.export.messages import SavedModel
from keras_attn.export.runtime import SignatureTensor
from tests.export.toy import expected, named, removed, save, truncated
from tests.harness import run_python
from tests.refusals import refused_in_one_line

STRINGS = ["", "short", "é" * 11, "x" * 22, "x" * 23, "long " * 1000, b"\xff\x00\xfe", "日本語"]


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    """Gives back what it takes, so that inputs and outputs share buffers."""

    def function(strings, **numbers):
        same = {f"same_{name}": tensor for name, tensor in numbers.items()}
        return {"same": strings, "length": tf.strings.length(strings), **same}

    dtypes = ["float32", "float64", "int32", "uint8", "int64", "bool", "float16", "int8"]
    specs = {dtype: named(dtype, [None, 2], dtype) for dtype in dtypes}
    folder = tmp_path_factory.mktemp("echo")
    save(folder, function, strings=named("strings", [None], tf.string), **specs)
    with CppSavedModel(folder) as model:
        yield model


@pytest.fixture
def numbers(echo):
    """One row of each type."""
    inputs = echo.signatures["serving_default"].inputs
    return {
        name: np.array([[0, 1]], spec.dtype) for name, spec in inputs.items() if name != "strings"
    }


@pytest.mark.parametrize("repeats", [1, 3])
def test_strings_come_back_as_the_same_bytes(echo, numbers, repeats):
    strings = STRINGS * repeats
    outputs = echo.run("serving_default", {"strings": strings, **numbers})
    as_bytes = [text.encode() if isinstance(text, str) else text for text in strings]
    assert outputs["same"].tolist() == as_bytes
    assert outputs["length"].tolist() == [len(text) for text in as_bytes]


@pytest.mark.parametrize("rows", [3, 91, 5000])
def test_slices_come_back(echo, numbers, rows):
    whole = np.arange(rows * 5).reshape(rows, 5)
    slices = {name: whole[:, 1:4:2].astype(array.dtype) for name, array in numbers.items()}
    slices["int64"] = whole[:, 1:4:2]  # not contiguous
    outputs = echo.run("serving_default", {"strings": ["a"], **slices})
    np.testing.assert_array_equal(outputs["same_int64"], slices["int64"].copy())


def test_every_data_type_comes_back(echo, numbers):
    values = {
        "float32": [[1.5, -np.inf], [3.0e38, 1e-45]],
        "float64": [[1e308, -2.5], [0.1, 3.0]],
        "float16": [[65504, -0.5], [2.0, 3.0]],
        "int32": [[2**31 - 1, -(2**31)], [5, 7]],
        "int64": [[2**63 - 1, -(2**63)], [5, 7]],
        "uint8": [[255, 0], [5, 7]],
        "int8": [[127, -128], [5, 7]],
        "bool": [[True, False], [False, True]],
    }
    arrays = {name: np.array(rows, name) for name, rows in values.items()}
    # A transposed array is not contiguous.
    arrays["int32"] = np.array([[2**31 - 1, 5], [-(2**31), 7]], np.int32).T
    outputs = echo.run("serving_default", {"strings": ["a"], **arrays})
    assert set(arrays) == set(numbers)
    for name, rows in values.items():
        assert outputs[f"same_{name}"].dtype == name
        assert outputs[f"same_{name}"].tolist() == np.array(rows, name).tolist(), name


def test_a_batch_may_be_empty(echo, numbers):
    empty = {name: array[:0] for name, array in numbers.items()}
    outputs = echo.run("serving_default", {"strings": [], **empty})
    assert outputs["same"].shape == (0,)
    assert outputs["same_float32"].shape == (0, 2)


def test_tables_and_loops_run(toy_model):
    texts = ["abc", "", "e", "aéb", "deadbeef"]
    with CppSavedModel(toy_model) as model:
        outputs = model.run("serving_default", {"text": texts})
    answers = [expected(text) for text in texts]
    assert [text.decode() for text in outputs["text"]] == [text for text, _ in answers]
    np.testing.assert_array_equal(outputs["score"], [score for _, score in answers])


def test_signatures_are_read_from_the_file(toy_model):
    model = CppSavedModel(toy_model.parent)
    assert model.folder == toy_model
    assert sorted(model.signatures) == ["serving_default", "token_ids"]
    default = model.signatures["serving_default"]
    assert sorted(default.outputs) == ["score", "text"]
    assert default.inputs == {
        "text": SignatureTensor("serving_default_text:0", np.dtype(object), (None,))
    }
    assert model.signatures["token_ids"].inputs["token_ids"].shape == (None, None)
    model.close()
    model.close()
    with pytest.raises(SavedModelError, match="is closed"):
        model.run("serving_default", {"text": ["a"]})


@pytest.mark.parametrize(
    ("signature", "inputs", "message"),
    [
        ("token_id", {}, "Did you mean 'token_ids'.*signature='token_id'"),
        ("serving_default", {"texts": ["a"]}, r"are 'text'.*inputs=\['texts'\]"),
        ("serving_default", {"text": [3]}, r"'text' must contain strings.*value=\[3\]"),
        ("serving_default", {"text": [["a"]]}, r"shape \(None,\).*shape=\(1, 1\)"),
        ("token_ids", {"token_ids": [[0.5]]}, "must be of type int32.*dtype='float64'"),
        ("token_ids", {"token_ids": [["a"]]}, "must be of type int32.*dtype='<U1'"),
        ("token_ids", {"token_ids": [[9]]}, r"^Running 'token_ids' failed: indices\[0,0\] = 9"),
    ],
)
def test_mistakes_are_told_in_one_line(toy_model, signature, inputs, message):
    with CppSavedModel(toy_model) as model:
        refused_in_one_line(message, model.run, signature, inputs)


def cannot_run(folder, inputs, message):
    with CppSavedModel(folder) as model, pytest.raises(SavedModelError, match=message):
        model.run("serving_default", inputs)


def test_a_ragged_output_cannot_be_run(tmp_path):
    text = named("text", [None], tf.string)
    save(tmp_path, lambda text: {"words": tf.strings.split(text)}, text)
    cannot_run(tmp_path, {"text": ["a b"]}, "no dense tensor named ''")


def test_a_data_type_that_numpy_lacks_is_refused(tmp_path):
    rows = named("rows", [None], tf.float32)
    save(tmp_path, lambda rows: {"half": tf.cast(rows, tf.bfloat16)}, rows)
    cannot_run(tmp_path, {"rows": [1.5]}, "data type number 14 has no array")


def test_a_wheel_without_the_library_is_one_clear_line(toy_model, tmp_path, monkeypatch):
    monkeypatch.setattr(c_api, "package_folder", lambda package: tmp_path)
    with pytest.raises(SavedModelError, match=r"libtensorflow_cc.*Received: .*") as raised:
        CppSavedModel(toy_model)
    assert str(tmp_path) in str(raised.value)
    (tmp_path / "libtensorflow_cc.so.2").write_text("no library")
    with pytest.raises(SavedModelError, match=r"libtensorflow_cc.so.2 cannot be used: "):
        CppSavedModel(toy_model)


def test_a_model_must_be_tagged_for_serving(tmp_path):
    other = SavedModel()
    other.meta_graphs.add().meta_info_def.tags.append("train")
    (tmp_path / "saved_model.pb").write_bytes(other.SerializeToString())
    with pytest.raises(SavedModelError, match="has no graph tagged 'serve'"):
        CppSavedModel(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncated("saved_model.pb", 7), "saved_model.pb is damaged"),
        (removed("variables"), r"has no variables: .*variables.index is missing"),
        (truncated("variables/variables.index", 20), "Loading .* failed: "),
    ],
)
def test_damage_is_told_in_one_line(toy_model, tmp_path, damage, message):
    copy = shutil.copytree(toy_model, tmp_path / "1")
    damage(copy)
    with pytest.raises(SavedModelError, match=message) as raised:
        CppSavedModel(copy)
    assert "\n" not in str(raised.value)


def test_a_process_that_runs_a_model_never_loads_tensorflows_python(toy_model):
    code = (
        "import sys; from keras_attn.export import CppSavedModel\n"
        f"model = CppSavedModel({str(toy_model)!r})\n"
        "print(model.run('serving_default', {'text': ['ab']})['text'][0].decode())\n"
        "print(sorted({'tensorflow', 'tensorflow_text', 'keras', 'jax'} & set(sys.modules)))\n"
    )
    assert run_python(code).split("\n")[:2] == ["aaabbb", "[]"]


def test_served_ops_are_cores_and_texts_without_its_metrics(served_ops):
    assert {"MatMul", "While", "LookupTableFindV2", "SentencepieceTokenizeOp"} <= served_ops
    assert "RougeL" not in served_ops

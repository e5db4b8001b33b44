import keras
import pytest
import tensorflow as tf
import tensorflow_text

from keras_attn.export import lint_saved_model
from tests.export.toy import named, save
from tests.refusals import refused

TEXT = named("text", [None], tf.string)
ROWS = named("rows", [None, 3], tf.float32)


def test_a_good_model_has_no_findings(toy_model, served_ops):
    assert lint_saved_model(toy_model, served_ops) == []


def _python(call):
    def function(rows):
        doubled = call(lambda x: 2 * x, [rows], tf.float32)
        return {"doubled": tf.ensure_shape(doubled, [None, 3])}

    return function


def _slice_update(rows):
    return {"updated": keras.ops.slice_update(rows, (0, 1), rows[:, :1])}


def _rouge(text):
    words = tf.strings.split(text)
    return {"f": tensorflow_text.metrics.rouge_l(words, words).f_measure}


def _unknown_rank(rows):
    return {"rows": tf.py_function(lambda x: x, [rows], tf.float32)}


DEFAULT = "of signature 'serving_default'"
BATCH = "dimension 0 must be the batch."


@pytest.mark.parametrize(
    ("function", "spec", "findings"),
    [
        (_python(tf.py_function), ROWS, ["Op EagerPyFunc calls Python"]),
        (_python(tf.numpy_function), ROWS, ["Op PyFunc calls Python"]),
        (_rouge, TEXT, ["Op RougeL is not supported by TensorFlow Serving: function '__infer"]),
        (_slice_update, ROWS, ["Op XlaDynamicUpdateSlice needs XLA"]),
        (
            lambda text: {"words": tf.strings.split(text)},
            TEXT,
            [f"Output 'words' {DEFAULT} is composite (ragged or sparse)"],
        ),
        (
            lambda rows: {"total": tf.reduce_sum(rows)},
            ROWS,
            [f"Output 'total' {DEFAULT} is a scalar: {BATCH}"],
        ),
        (
            lambda rows: {"totals": tf.reduce_sum(rows, axis=0)},
            ROWS,
            [f"Output 'totals' {DEFAULT} has 3 fixed rows: {BATCH}"],
        ),
        (
            lambda rows: {"doubled": 2 * rows},
            named("rows", [5, 3], tf.float32),
            [
                f"Input 'rows' {DEFAULT} has 5 fixed rows: {BATCH}",
                f"Output 'doubled' {DEFAULT} has 5 fixed rows: {BATCH}",
            ],
        ),
        (
            _unknown_rank,
            ROWS,
            [f"Output 'rows' {DEFAULT} has an unknown rank: {BATCH}", "Op EagerPyFunc"],
        ),
        (
            lambda rows: 2 * rows,
            named("keras_tensor_7", [None, 3], tf.float32),
            [
                f"Input 'keras_tensor_7' {DEFAULT} has a generated name",
                f"Output 'output_0' {DEFAULT} has a generated name",
            ],
        ),
        (
            lambda text: {"text": text + tf.constant("/home/someone/vocabulary.txt")},
            TEXT,
            ["'/home/someone/vocabulary.txt': function '__inference_"],
        ),
    ],
)
def test_each_rule_finds_its_mistake(tmp_path, served_ops, function, spec, findings):
    found = lint_saved_model(save(tmp_path, function, spec), served_ops)
    assert len(found) == len(findings), found
    for line, finding in zip(found, findings, strict=True):
        assert finding in line
        assert "\n" not in line


def test_a_compiled_function_is_found_unless_xla_is_allowed(tmp_path, served_ops):
    save(tmp_path, lambda rows: {"doubled": 2 * rows}, ROWS, jit=True)
    findings = lint_saved_model(tmp_path, served_ops)
    assert findings
    assert all("needs XLA" in finding and "(jit_compile)" in finding for finding in findings)
    assert lint_saved_model(tmp_path, served_ops, allow_xla=True) == []


def test_a_missing_default_signature_is_found(tmp_path, served_ops):
    module = tf.Module()
    module.double = tf.function(lambda rows: {"doubled": 2 * rows}, input_signature=[ROWS])
    tf.saved_model.save(module, str(tmp_path), {"double": module.double})
    [finding] = lint_saved_model(tmp_path, served_ops)
    assert "There is no signature 'serving_default'" in finding


def test_source_files_in_debug_information_are_found(tmp_path, served_ops):
    save(tmp_path, lambda rows: {"doubled": 2 * rows}, ROWS)
    path = tmp_path / "debug" / "saved_model_debug_info.pb"
    path.parent.mkdir()
    path.write_bytes(b"\n\x18/home/me/project/model.py\x12")
    [finding] = lint_saved_model(tmp_path, served_ops)
    assert finding == f"debug/{path.name} names a source file: '/home/me/project/model.py'."


def test_a_vocabulary_may_hold_paths(tmp_path, served_ops):
    words = tf.constant(["/usr/local", "/home/someone"])
    save(tmp_path, lambda rows: {"word": tf.gather(words, tf.cast(rows[:, 0], tf.int32))}, ROWS)
    assert lint_saved_model(tmp_path, served_ops) == []


def test_there_must_be_a_saved_model(tmp_path, served_ops):
    refused(r"must contain 'saved_model.pb'.*folder='.*'", lint_saved_model, tmp_path, served_ops)
    message = r"The folder of the SavedModel does not exist.*/absent'"
    refused(message, lint_saved_model, tmp_path / "absent", served_ops)

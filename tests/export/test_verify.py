import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import SavedModelError, export_saved_model, verify
from keras_attn.export.golden import GOLDEN, Golden, write_golden
from keras_attn.export.warmup import WARMUP, write_warmup
from keras_attn.export_manifest import MANIFEST
from tests.export.toy import ToyTask, named, removed, save, truncated, verified
from tests.refusals import refused, refused_in_one_line


@pytest.fixture
def copy(toy_model, tmp_path):
    return shutil.copytree(toy_model, tmp_path / "toy" / "3")


def _files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_is_verified_and_left_as_it_was(copy):
    before = _files(copy)
    report = verified(copy.parent)
    assert report.folder == copy
    assert _files(copy) == before
    assert str(report).splitlines() == [
        f"{copy}: verified",
        *(f"  checked  {check}" for check in report.checks),
    ]
    assert [check.partition(":")[0] for check in report.checks] == [
        "lint",
        f"loaded by TensorFlow {tf.__version__}'s C++ runtime, XLA disabled",
        "golden outputs",
        "warm-up",
    ]
    assert report.checks[2:] == (
        "golden outputs: 2 examples of serving_default, token_ids",
        "warm-up: 4 records replayed",
    )


def test_the_process_that_checks_loads_no_tensorflow_of_python(copy):
    modules = verify(copy).modules
    assert {"numpy", "google", "keras_attn"} <= modules
    assert not modules & {"tensorflow", "tensorflow_text", "keras", "jax", "tensorboard"}


def test_the_process_refuses_to_answer_with_tensorflow_loaded(copy):
    code = (
        "import sys, types; sys.modules['tensorflow'] = types.ModuleType('tensorflow')\n"
        "from importlib.machinery import ModuleSpec, PathFinder\n"
        "sys.modules['tensorflow'].__spec__ = PathFinder.find_spec('tensorflow')\n"
        f"from keras_attn.export.verify_process import main; main({str(copy)!r})\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == 1
    assert process.stdout == ""
    assert "The checking process loaded tensorflow." in process.stderr


def test_jit_needs_xla_and_is_verified_with_it(tmp_path):
    version = export_saved_model(ToyTask(), tmp_path, jit=True)
    report = verified(version)
    assert report.checks[1].endswith("XLA enabled, as the export says --jit")
    manifest = json.loads((version / MANIFEST).read_text())
    (version / MANIFEST).write_text(json.dumps({**manifest, "jit": False}))
    report = verify(version)
    findings = "\n".join(report.findings)
    assert "needs XLA, which is disabled in TensorFlow Serving (jit_compile)" in findings
    assert "Golden outputs of signature 'serving_default': Running" in findings
    assert "XLA compilation disabled" in findings


def _change_golden(copy):
    path = copy / GOLDEN
    content = json.loads(path.read_text())
    content["examples"][0]["outputs"]["score"]["values"][1] += 0.01
    path.write_text(json.dumps(content))


def _change_weights(copy):
    # The weight of letter "e".
    path = copy / "variables" / "variables.data-00000-of-00001"
    content = path.read_bytes()
    weight = np.float32(11).tobytes()
    assert content.count(weight) == 1
    path.write_bytes(content.replace(weight, np.float32(43).tobytes()))


def _fail_in_warmup(copy):
    write_warmup(copy, [("token_ids", {"token_ids": np.array([[9]], np.int32)})])


def _forget_a_signature(copy):
    outputs = {"scores": np.array([[6.0, 6.0]], np.float32)}
    inputs = {"token_ids": np.array([[4]], np.int32)}
    write_golden(copy, Golden([("token_ids", inputs, outputs)]))


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (_change_golden, "Golden outputs of signature 'serving_default': output 'score' differs"),
        (_fail_in_warmup, "Warm-up record of signature 'token_ids': Running 'token_ids' failed"),
        (_forget_a_signature, "Signature 'serving_default' has no golden outputs."),
        (removed(WARMUP), "The warm-up records are missing."),
    ],
)
def test_what_is_wrong_is_found(copy, change, finding):
    change(copy)
    report = verify(copy)
    assert not report.ok
    assert len(report.findings) == 1
    assert report.findings[0].startswith(finding)
    assert f"  found    {finding}" in str(report)
    assert str(report).startswith(f"{copy}: FAILED\n")


@pytest.mark.parametrize(("rtol", "ok"), [(1e-4, False), (1e-3, True)])
def test_the_golden_outputs_say_how_far_off_is_too_far(copy, rtol, ok):
    """The score of "abc" is 30, three times 2 + 3 + 5."""
    path = copy / GOLDEN
    content = json.loads(path.read_text())
    content["examples"][0]["outputs"]["score"]["values"][0] = 30.015
    path.write_text(json.dumps(content | {"rtol": rtol}))
    assert verify(copy).ok is ok


def test_a_linting_mistake_is_found(copy):
    text = named("text", [None], tf.string)
    shutil.rmtree(copy / "variables")
    save(copy, lambda text: {"words": tf.strings.split(text)}, text)
    write_golden(copy, Golden([("serving_default", {"text": np.array([b"a"], object)}, {})]))
    write_warmup(copy, [])
    findings = verify(copy).findings
    assert any("is composite (ragged or sparse)" in finding for finding in findings)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "must contain 'saved_model.pb'"),
        (removed("saved_model.pb"), "must contain 'saved_model.pb'"),
        (removed(MANIFEST), "not exported by keras_attn"),
        (lambda copy: (copy / MANIFEST).write_text("[]"), "format version.*format_version=None"),
        (lambda copy: (copy / MANIFEST).write_text("{"), "valid JSON is expected"),
        (removed(GOLDEN), "golden.json is missing"),
        (truncated(WARMUP, 1), "warmup_requests is damaged"),
        (truncated("saved_model.pb", 3), "saved_model.pb is damaged"),
        (truncated("variables/variables.index", 9), "Loading .* failed"),
        (removed("variables/variables.data-00000-of-00001"), "Loading .* failed"),
        (removed("variables"), "has no variables"),
        (_change_weights, "Loading .* failed.*[Cc]hecksum"),
    ],
)
def test_a_damaged_model_is_one_clear_line(copy, damage, message):
    damage(copy)
    refused_in_one_line(message, verify, copy.parent)


def test_a_foreign_model_is_refused(tmp_path):
    save(tmp_path, lambda x: {"y": 2 * x}, named("x", [None], tf.float32))
    refused(r"not exported by keras_attn.*folder='", verify, tmp_path)


def test_a_missing_folder_is_refused(tmp_path):
    refused(r"The folder of the SavedModel does not exist.*/absent'", verify, tmp_path / "absent")


@pytest.mark.parametrize(
    ("status", "stderr", "message"),
    [
        (-11, "", "TensorFlow's C[+][+] runtime was stopped by SIGSEGV"),
        (1, "Traceback\n  File\nValueError: odd  things.\n", "failed: ValueError: odd things[.]$"),
        (3, "", "failed: exit status 3[.]$"),
    ],
)
def test_a_crash_is_one_clear_line(copy, monkeypatch, status, stderr, message):
    crashed = subprocess.CompletedProcess([], status, "", stderr)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: crashed)
    with pytest.raises(SavedModelError, match=message):
        verify(copy)


def test_a_slow_check_is_stopped(copy):
    with pytest.raises(SavedModelError, match=r"took longer than 0\.01 seconds"):
        verify(copy, timeout=0.01)

"""Operations of tasks in folders above: one module imports them by name."""

import ast
import importlib
from pathlib import Path

import pytest

import keras_attn
from keras_attn.tasks import operations
from keras_attn.validation import UserError
from tests.tasks.made import make_task

PACKAGE = Path(keras_attn.__file__).parent
# Backends that may be absent, and packages that import their own modules late.
OTHERS = {
    *(
        "ops/adding.py",
        "ops/autodiff.py",
        "ops/devices.py",
        "ops/known_values.py",
        "benchmarks/layer_call.py",
    ),
    *("ops/fused_attention.py", "ops/integer_product.py", "ops/linear.py"),
    *("__init__.py", "export/__init__.py", "training/__init__.py", "registration.py"),
    *("cli/parser.py", "cli/benchmark/__init__.py"),
}


def imports_by_name(path):
    names = {"import_module", "__import__", "find_spec_from_name"}
    return any(
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", None)) in names
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_one_module_imports_folders_above_by_name():
    found = {str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if imports_by_name(p)}
    assert found == {"tasks/operations.py"} | OTHERS


@pytest.mark.parametrize("name", operations._FUNCTIONS)
def test_an_operation_is_where_it_is_looked_for(name):
    with pytest.raises((TypeError, UserError)):
        operations.perform(name)
    module, function = operations._FUNCTIONS[name]
    assert getattr(importlib.import_module(module), function).__module__ == module


@pytest.mark.tensorflow
def test_tasks_compute_in_tensorflow(monkeypatch, tmp_path):
    task = make_task()
    monkeypatch.setattr("keras.backend.backend", lambda: "torch")
    for call in (
        lambda: task.predict(["ab"]),
        lambda: task.fit([("ab", "B")], out=tmp_path / "run"),
        lambda: task.evaluate([("ab", "B")]),
        lambda: task.export(tmp_path / "exported"),
    ):
        with pytest.raises(UserError, match="set KERAS_BACKEND=tensorflow .*backend='torch'"):
            call()
    assert not list(tmp_path.iterdir())

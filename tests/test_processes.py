"""Every Python that is started leaves the files of the current folder alone."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "keras_attn"
HOME = "processes.py"
HOSTILE = ("numpy", "keras", "tensorflow", "json", "pathlib", "argparse", "sitecustomize", "yaml")


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    from keras_attn.export import export_saved_model
    from tests.export.toy import ToyTask

    return export_saved_model(ToyTask(), tmp_path_factory.mktemp("toy"), n_best=2).parent


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A current folder with modules that leave a trace; returns the folder of the traces."""
    folder, traces = tmp_path / "current", tmp_path / "traces"
    folder.mkdir()
    traces.mkdir()
    for name in HOSTILE:
        trace = f"open({str(traces / name)!r}, 'w').close()\nraise SystemExit({name!r})\n"
        (folder / f"{name}.py").write_text(trace)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    return traces


def verify(toy, folder):
    from keras_attn.export import verify

    assert verify(toy).ok


def a_child(toy, folder):
    from keras_attn.processes import python_command, python_environment
    from keras_attn.training.workers.end_with_parent import ending_with_parent

    command = ending_with_parent(python_command("keras_attn", "--version"))
    subprocess.run(command, env=python_environment(), check=True, stdout=subprocess.DEVNULL)


def supervised_training(toy, folder):
    from keras_attn.cli import main

    assert main(["train", "--supervise", "--config", "nothing.yaml", "--out", str(folder)]) == 2


def search(toy, folder):
    from keras_attn.processes import python_command
    from keras_attn.tuning.processes import run_chief_and_workers

    assert run_chief_and_workers(python_command("keras_attn", "--version"), 1) == 0


def trial(toy, folder):
    import keras_tuner

    from keras_attn.tuning.trial_runs import train

    with pytest.raises(keras_tuner.errors.FailedTrialError, match="There is no such file"):
        train(folder, folder / "nothing.yaml", folder / "log.txt")


def layer_call(toy, folder):
    from keras_attn.benchmarks.layer_call import measure_in_a_process

    settings = {"workload": "nothing", "precision": "float32"}
    assert "No module named 'keras_attn.benchmarks.nothing'" in str(measure_in_a_process(settings))


def a_server(toy, folder):
    from keras_attn.benchmarks.serve import _server
    from keras_attn.validation import UserError

    with pytest.raises(UserError, match="did not start"), _server(folder / "nothing", []):
        pass


SLOW = [
    pytest.param(start, marks=pytest.mark.slow)
    for start in (trial, layer_call, supervised_training)
]
STARTS = (verify, a_child, search, a_server, *SLOW)


@pytest.mark.tensorflow
@pytest.mark.parametrize("start", STARTS)
def test_no_file_of_the_current_folder_is_run(toy, hostile, monkeypatch, tmp_path, start):
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}.{os.pathsep}")
    start(toy, tmp_path)
    assert list(hostile.iterdir()) == []


@pytest.mark.tensorflow
def test_python_m_takes_the_current_folder_off_its_path(hostile):
    subprocess.run([sys.executable, "-m", "keras_attn", "--version"], check=True)
    assert list(hostile.iterdir()) == []


@pytest.mark.tensorflow
@pytest.mark.parametrize("entries", [":", ".:", "./."])
def test_the_command_forgets_what_pythonpath_says_of_the_current_folder(
    hostile, monkeypatch, entries
):
    """But for what Python itself imports as it starts, in an editable installation too."""
    for name in ("sitecustomize.py", "pathlib.py"):
        (pathlib.Path.cwd() / name).unlink()
    monkeypatch.setenv("PYTHONPATH", entries.replace(":", os.pathsep))
    for start in (["-m", "keras_attn"], ["-c", "import keras_attn.__main__ as m; m.main()"]):
        subprocess.run([sys.executable, *start, "--version"], check=True)
    assert list(hostile.iterdir()) == []


def test_relative_folders_of_pythonpath(monkeypatch, tmp_path):
    from keras_attn.processes import python_environment

    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path)
    for given, kept in {
        "": None,
        ".": None,
        "./beside/..": None,
        f"{tmp_path}{os.pathsep}": str(tmp_path),  # named on purpose
        f"beside{os.pathsep}.": str(tmp_path / "beside"),
    }.items():
        monkeypatch.setenv("PYTHONPATH", given)
        assert python_environment().get("PYTHONPATH") == kept, given


def test_python_is_started_in_one_place():
    """`sys.executable` stands in one file, and what is started is given an environment."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            place = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Attribute) and node.attr == "executable":
                assert path.name == HOME, place
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = getattr(node.func.value, "id", "")
                command = node.args[0] if node.args else None
                shell = isinstance(command, ast.List) and "/bin/sh" in ast.unparse(command)
                if owner == "subprocess" and not shell:
                    assert "env" in {keyword.arg for keyword in node.keywords}, place
                assert (owner, node.func.attr) not in {("os", "system"), ("os", "popen")}, place
            if isinstance(node, ast.List) and node.elts:
                assert getattr(node.elts[0], "value", "") not in ("python", "python3"), place

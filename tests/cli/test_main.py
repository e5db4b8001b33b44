"""Starting up, help, and how mistakes are told."""

import os
import subprocess
import sys

import pytest

import keras_attn as package
from keras_attn.cli.parser import COMMANDS as NAMES
from keras_attn.validation import UserError

LIST_HEAVY = """
import sys
from keras_attn.cli import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
heavy = {"keras", "tensorflow", "jax", "numpy", "rich"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([n, "--help"] for n in NAMES)])
def test_help_imports_nothing_heavy(arguments):
    command = [sys.executable, "-c", LIST_HEAVY, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def test_help_is_quick_and_teaches():
    seconds = []  # of a core, which other work on the machine does not change
    for _ in range(3):
        before = os.times()
        command = [sys.executable, "-m", "keras_attn", "--help"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        after = os.times()
        seconds.append(after.children_user - before.children_user)
    assert min(seconds) < 2
    assert shown.stderr == ""
    for name in NAMES:
        assert f"\n    {name}" in shown.stdout
    assert "keras-attn train --preset g2p_small --data cmudict" in shown.stdout


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command_has_examples(keras_attn, name):
    status, output, error = keras_attn(name, "--help")
    assert (status, error) == (0, "")
    assert "\nexamples:\n  keras-attn " in output


def test_version(keras_attn):
    output = keras_attn.output("--version")
    assert output.startswith(f"keras-attn {package.__version__} (Python 3.")
    assert "TensorFlow 2." in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a command is needed: presets, data, train,"),
        (["trian"], "COMMAND: 'trian' is none of presets, data, train, .*; did you mean 'train'?"),
        (["train"], "the following arguments are required: --out (see `keras-attn train --help`)"),
        (["train", "--out", "x", "--epoch", "3"], "'--epoch'; did you mean '--epochs'?"),
        (["train", "--out", "x", "--epochs", "soon"], "--epochs: invalid int value: 'soon'"),
        (["train", "--out", "x", "--task", "seq2seqs"], "--task: 'seq2seqs' is none of seq2seq"),
        (["verify", "a", "b"], "unknown argument 'b'"),
        (["predict", "x", "--beems", "3"], "unknown argument '--beems'; did you mean '--beams'?"),
    ],
)
def test_mistakes_in_options_take_one_line(keras_attn, arguments, message):
    error = keras_attn.refusal(*arguments)
    for part in message.split(".*"):
        assert part in error


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        (UserError("Two\nlines. Received: x=1."), 2, "Two lines. Received: x=1."),
        (PermissionError(13, "Permission denied", "/root/x"), 2, "Permission denied: '/root/x'"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_take_one_line(keras_attn, monkeypatch, raised, status, line):
    def run(folder):
        raise raised

    monkeypatch.setattr("keras_attn.export.verify", run)
    outcome = keras_attn("verify", "x")
    assert outcome[:2] == (status, "")
    assert outcome[2].startswith("keras-attn: error: ")
    assert outcome[2].endswith(f"{line}\n")
    assert outcome[2].count("\n") == 1


def test_bugs_keep_their_traceback(keras_attn, monkeypatch):
    monkeypatch.setattr("keras_attn.export.verify", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        keras_attn("verify", "x")


@pytest.mark.parametrize(
    ("machine", "given", "expected"),
    [("x86_64", None, "1"), ("x86_64", "0", "0"), ("aarch64", None, None)],
)
def test_one_dnn_is_used_on_x86(keras_attn, monkeypatch, machine, given, expected):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    if given:
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", given)
    monkeypatch.setattr("platform.machine", lambda: machine)
    keras_attn("--version")
    assert os.environ.get("TF_ENABLE_ONEDNN_OPTS") == expected


@pytest.mark.slow
def test_the_start_of_tensorflow_is_silent():
    command = [sys.executable, "-m", "keras_attn", "evaluate", "nowhere", "--data", "nothing.tsv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    expected = "nowhere does not exist."
    assert done.stderr == f"keras-attn: error: {expected}\n"

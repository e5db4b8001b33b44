"""`keras-attn serve` as a process: it starts, ends when told to, and refuses what is wrong."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile

import numpy as np
import pytest

from tests.cli.conftest import keras_attn  # noqa: F401

pytestmark = pytest.mark.tensorflow


def test_it_ends_when_it_is_told_to_and_finishes_what_it_has_begun(models):
    command = [sys.executable, "-m", "keras_attn", "serve", f"odd={models['odd']}"]
    command += ["--rest-port", "0", "--grpc-port", "0", "--batch-threads", "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("This is a development server.")
        address = lines[1].split()[-1]
        count = 400_000
        content = {"instances": [{"count": count, "image_bytes": "a"}]}
        answers = []

        def ask():
            body = json.dumps(content).encode()
            with urllib.request.urlopen(f"{address}v1/models/odd:predict", body, 60) as answer:
                answers.append(json.loads(answer.read())["predictions"][0]["count"])

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        patience = time.monotonic() + 60
        while b'waiting{model="odd"} 1.0' not in _read(f"{address}metrics"):
            assert time.monotonic() < patience, "nothing waits"
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)  # while one is run and one waits
        for thread in threads:
            thread.join()
        assert answers == [count, count]
        assert process.wait(60) == 0
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        error = process.stderr.read()
    assert "odd version 1 is served" in error
    assert "warning" not in error
    assert "Traceback" not in error


def _read(address):
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["g2p"], "A model must be NAME=DIR"),
        (["=here"], "A model must be NAME=DIR"),
        (["../g2p=here"], "letters, digits"),
        (["a/b=here"], "letters, digits"),
        ([".hidden=here"], "letters, digits"),
        (["g2p="], "A model must be NAME=DIR"),
        (["g2p=/nowhere"], "The folder of a model's versions does not exist"),
        (["g2p=.", "--batch-rows", "0"], "`batch_rows` must be a positive integer"),
        (["g2p=.", "--timeout", "0"], "--timeout must be above 0"),
        (["g2p=.", "g2p=."], "needs a different name"),
        (["g2p=.", "--host", ""], "--host must name an address of this machine. Received: host=''"),
        (["g2p=.", "--rest-port", "65536"], "--rest-port must be a port, 0 to 65535. Received: re"),
        (["g2p=.", "--grpc-port", "-1"], "--grpc-port must be a port, 0 to 65535. Received: grpc"),
        (["g2p=.", "--batch-threads", "1000000000"], "--batch-threads must be at most 1024."),
    ],
)
def test_mistakes_are_told(keras_attn, arguments, message):  # noqa: F811
    assert message in keras_attn.refusal("serve", *arguments)


def test_what_runs_code_when_it_is_loaded_is_no_model(keras_attn, tmp_path):  # noqa: F811
    """Neither a `.keras` file with a Lambda nor a task folder or a pickle is ever opened."""
    trace = tmp_path / "trace"
    task = tmp_path / "task"
    task.mkdir()
    evil = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    (task / "task.json").write_text(json.dumps({"kind": evil}))
    np.save(task / "weights.npy", np.array([_Evil(trace)], object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", json.dumps({"class_name": "Lambda", "config": evil}))
    refusals = {task: "holds a folder for each version", tmp_path / "model.keras": "does not exist"}
    for folder, message in refusals.items():
        assert message in keras_attn.refusal("serve", f"model={folder}", "--rest-port", "0")
    assert not trace.exists()


class _Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_port_that_is_taken_is_told(keras_attn, models):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = keras_attn.refusal("serve", f"toy={models['toy']}", "--rest-port", port)
    assert f"port={port}" in error


def test_help_says_what_it_is_for(keras_attn):  # noqa: F811
    output = keras_attn.output("serve", "--help")
    assert "A development server, without authentication" in output
    assert "For production use\nTensorFlow Serving" in output

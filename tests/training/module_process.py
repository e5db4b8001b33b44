"""Modules of the tests run in a process of their own, such as one with two logical devices."""

import json
import os
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def start_module(name, *arguments, prefix=()):
    """A module in a process of its own; `prefix` is a command that starts another one."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", name, *map(str, arguments)],
        env=environment,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process, status=0, timeout=600):
    """The output of a process and its standard error, when it has ended with a status."""
    try:
        output, errors = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == status, errors[-4000:]
    return output, errors


def run_module(name, *arguments, timeout, prefix=()):
    """What a module printed as JSON on its last line, and its standard error."""
    output, errors = finished(start_module(name, *arguments, prefix=prefix), timeout=timeout)
    return json.loads(output.splitlines()[-1]), errors

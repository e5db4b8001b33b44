"""Modules of the tests run in a process of their own, such as one with two logical devices."""

import json
import os
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def run_module(name, *arguments, timeout, prefix=()):
    """What a module printed as JSON on its last line, and its standard error.

    `prefix` is a command that starts another one, given after it.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run(
        [*prefix, sys.executable, "-m", name, *arguments],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr

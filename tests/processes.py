"""Python started anew."""

import os
import subprocess
import sys

import keras

from tests.harness import PROJECT


def run_python(code, *arguments, **environment):
    """What a new Python process of the project prints, with the backend of this one."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"KERAS_BACKEND": keras.backend.backend()} | environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout

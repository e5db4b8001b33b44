import json
import subprocess
import sys

import pytest

from keras_attn.export import export_saved_model
from tests.export.toy import ToyTask


@pytest.fixture(scope="package")
def served_ops():
    """The ops that TensorFlow Serving links, from a process that has loaded nothing else."""
    code = (
        "import json; from keras_attn.export import served_ops; print(json.dumps([*served_ops()]))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return frozenset(json.loads(process.stdout))


@pytest.fixture(scope="package")
def toy_model(tmp_path_factory):
    """The exported toy task; a test that changes it works on a copy."""
    folder = tmp_path_factory.mktemp("models") / "toy"
    return export_saved_model(ToyTask(), folder, n_best=2, examples=["abc", "e", "aéb"])

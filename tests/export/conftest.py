import json

import pytest

from keras_attn.export import export_saved_model
from tests.export.toy import ToyTask
from tests.harness import run_python


@pytest.fixture(scope="package")
def served_ops():
    """The ops that TensorFlow Serving links, from a process that has loaded nothing else."""
    code = (
        "import json; from keras_attn.export import served_ops; print(json.dumps([*served_ops()]))"
    )
    return frozenset(json.loads(run_python(code)))


@pytest.fixture(scope="package")
def toy_model(tmp_path_factory):
    """The exported toy task; a test that changes it works on a copy."""
    folder = tmp_path_factory.mktemp("models") / "toy"
    return export_saved_model(ToyTask(), folder, n_best=2, examples=["abc", "e", "aéb"])

"""One head, one row, one position: sizes at which a library may take another way, or crash."""

import inspect
import os
import pathlib
import subprocess
import sys

import pytest

from keras_attn import layers

PROJECT = pathlib.Path(__file__).resolve().parents[2]
GROUPS = [("heads", "memories", "synthesizers", "scores", "others"), ("blocks", "models")]

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("groups", GROUPS, ids=" ".join)
def test_every_layer_in_a_process_of_its_own(groups):
    script = PROJECT / "tests" / "layers" / "sizes_of_one.py"
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, script, *groups],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    last = (done.stdout.splitlines() or ["nothing"])[-1]
    assert last == "done", f"{last} ended with {done.returncode}:\n{done.stderr[-1500:]}"


def test_every_public_layer_is_in_a_group():
    from tests.layers import sizes_of_one

    run = {group for groups in GROUPS for group in groups}
    assert run == set(sizes_of_one.GROUPS) | {"models"}
    names = {name.split(",")[0] for group in sizes_of_one.GROUPS.values() for name in group}
    public = {name: getattr(layers, name) for name in layers.__all__}
    is_layer = {name for name, x in public.items() if inspect.isclass(x)} - {"GlobalLocalPieces"}
    assert names == is_layer

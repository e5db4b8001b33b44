"""One head, one row, one position: sizes at which a library may take another way, or crash."""

import inspect

import pytest

from keras_attn import layers
from tests.backends import thinned
from tests.harness import run_python

GROUPS = [["heads", "others"], ["memories", "synthesizers", "scores"], ["blocks", "models"]]

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("groups", thinned(GROUPS, on_tensorflow=3), ids=" ".join)
def test_every_layer_in_a_process_of_its_own(groups):
    code = "import sys; from tests.layers.sizes_of_one import main; main(sys.argv[1:])"
    assert run_python(code, *groups, TF_CPP_MIN_LOG_LEVEL="3").endswith("done\n")


def test_every_public_layer_is_in_a_group():
    from tests.layers import sizes_of_one

    run = {group for groups in GROUPS for group in groups}
    assert run == set(sizes_of_one.GROUPS) | {"models"}
    names = {name.split(",")[0] for group in sizes_of_one.GROUPS.values() for name in group}
    public = {name: getattr(layers, name) for name in layers.__all__}
    is_layer = {name for name, x in public.items() if inspect.isclass(x)} - {"GlobalLocalPieces"}
    assert names == is_layer

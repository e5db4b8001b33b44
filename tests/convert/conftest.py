"""The checkpoint that a file of tests is about, named by its `CHECKPOINT`."""

import pytest

from tests.convert.made import converted, copy_of
from tests.harness import arrays_of


@pytest.fixture(scope="module")
def golden(request):
    return arrays_of(f"{request.module.CHECKPOINT}_outputs.npz")


@pytest.fixture(scope="module")
def task(request):
    return converted(request.module.CHECKPOINT)


@pytest.fixture
def folder(request, tmp_path):
    """A copy that a test may change."""
    return copy_of(request.module.CHECKPOINT, tmp_path / "checkpoint")

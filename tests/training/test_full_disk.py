"""A disk that becomes full in the middle of a run."""

import shutil
import subprocess

import pytest

from tests.training.module_process import run_module

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

# A mount namespace of its own, in which a small disk can be made without rights.
ALONE = ["unshare", "-rm"]


def test_nothing_is_lost_and_one_line_tells(tmp_path):
    if not shutil.which("unshare") or subprocess.run([*ALONE, "true"], check=False).returncode:
        pytest.skip("a disk of its own needs `unshare -rm`")
    found, _ = run_module("tests.training.full_disk", str(tmp_path), prefix=ALONE, timeout=600)
    assert found["whole"] == 0
    assert found["full"] == 2
    assert found["last_line"].startswith("keras-attn: error: ")
    assert "No space left on device" in found["last_line"]
    assert not found["traceback"]
    assert found["checkpoints"] > 2
    assert found["sound"]
    assert found["rows"]
    assert found["resumed"] == 0
    assert found["equal"]

"""What is started here does not outlive it."""

import subprocess
import sys

import pytest

from keras_attn.training.workers.end_with_parent import ending_with_parent

pytestmark = pytest.mark.tensorflow

PARENT = """
import subprocess, sys, time
from pathlib import Path
from keras_attn.training.workers.end_with_parent import ending_with_parent
from keras_attn.training.workers.supervision import supervise
from keras_attn.tuning.processes import run_chief_and_workers
child = [sys.executable, "-c", "import os, time; os.write(1, bytes([49, 10])); time.sleep(120)"]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells children of their parent's end")
@pytest.mark.parametrize(
    ("children", "start"),
    [
        (1, "subprocess.run(ending_with_parent(child))"),
        (1, "supervise(child, Path('nowhere'))"),
        (3, "run_chief_and_workers(child, 2)"),
    ],
)
def test_children_end_with_a_parent_that_is_killed(children, start):
    with subprocess.Popen([sys.executable, "-c", PARENT + start], stdout=subprocess.PIPE) as parent:
        for _ in range(children):
            assert parent.stdout.readline() == b"1\n"
        parent.kill()
        # The pipe is closed when the last of those that hold it has ended.
        assert parent.communicate(timeout=60) == (b"", None)


def test_status_is_the_commands():
    command = ending_with_parent([sys.executable, "-c", "import sys; sys.exit(int(sys.argv[1]))"])
    assert subprocess.run([*command, "7"], check=False).returncode == 7

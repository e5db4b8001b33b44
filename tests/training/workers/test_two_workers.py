"""Several processes train as one; each case is minutes of starting processes."""

import shutil
import subprocess

import pytest

from tests.training.module_process import run_module
from tests.training.two_workers import LOST_SECONDS

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

# TensorFlow's servers listen on every interface: in a network of its own nobody else reaches them.
ALONE = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


@pytest.fixture(scope="module")
def prefix():
    """What starts a process in a network of its own, where that is allowed."""
    if shutil.which("unshare") and not subprocess.run([*ALONE, "true"], check=False).returncode:
        return ALONE
    return []


@pytest.fixture
def scenario(tmp_path, prefix):
    def run(name):
        found = run_module(
            "tests.training.two_workers", str(tmp_path), name, prefix=prefix, timeout=900
        )[0]
        for log in sorted(tmp_path.glob("*.log")):
            print(log.name, log.read_text(), sep="\n")
        return found

    return run


def test_two_workers_equal_one_process(scenario):
    found = scenario("equal")
    assert (found["one"], found["two"]) == ([0], [0, 0])
    assert found["weights"] < 1e-9
    assert found["metrics"] < 1e-9
    assert found["rows"] > 15


@pytest.fixture(scope="module")
def landed():
    """For every kill, whether the run was going; most must have been, or nothing was tested."""
    kills = []
    yield kills
    assert sum(kills) >= len(kills) / 2


@pytest.mark.parametrize("seed", range(5))
def test_a_worker_killed_at_a_random_moment(scenario, landed, seed):
    found = scenario(f"killed at random {seed}")
    landed.append(-9 in found["ended"]["codes"])
    assert sorted(found["ended"]["codes"]) in ([-9, 75], [-9, 0], [0, 0])
    assert found["goes_on"] == [0, 0]
    assert found["equal"]


@pytest.mark.parametrize(
    ("name", "codes"),
    [("killed", [75, -9]), ("chief killed", [-9, 75]), ("terminated", [143, 143])],
)
def test_a_group_that_ended_goes_on_to_the_bit(scenario, name, codes):
    found = scenario(name)
    assert found["whole"] == [0, 0]
    assert found["ended"]["codes"] == codes
    assert found["ended"]["seconds"] < 3 * LOST_SECONDS + 10
    assert found["goes_on"] == [0, 0]
    assert found["equal"]


@pytest.mark.parametrize(
    ("what", "codes", "said"),
    [
        ("folders", [2, 2], "a disk that all workers share: worker 1 (127"),
        ("seeds", [2, 2], "worker 1 has another training.seed"),
        ("data", [2, 2], "the chief's training data"),
        ("port", [75, 75], "cannot join: its port is in use"),
        ("crash", [75, 2], None),
    ],
)
def test_workers_that_cannot_work_together_say_why(scenario, what, codes, said):
    found = scenario(f"refused {what}")
    assert found["codes"] == codes
    assert found["seconds"] < 200  # on a machine with much else to do
    for index, lines in enumerate(found["said"]):
        assert len(lines) == 1
        expected = said or ("Worker 1 (127", "nowhere.tsv")[index]
        assert expected in lines[0]

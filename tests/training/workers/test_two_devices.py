import pytest

from tests.training.module_process import run_module

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def found():
    return run_module("tests.training.two_devices", timeout=600)[0]


@pytest.mark.parametrize(
    ("kind", "updates", "tolerance"),
    # Muon's orthogonal matrices enlarge the last bits of a small gradient.
    [("single", 5, 2e-15), ("accumulated", 3, 2e-15), ("muon", 5, 1e-12)],
)
def test_two_devices_equal_one(found, kind, updates, tolerance):
    result = found[kind]
    assert result["updates"] == updates
    assert result["moved"] > 1e-3
    assert result["weights"] < tolerance
    assert result["sums"] < tolerance


def test_each_replica_drops_out_its_own(found):
    assert found["dropout"] == {
        "replicas_differ": True,
        "calls_differ": True,
        "first_as_alone": True,
        "states": [[7, 2], [7, 2]],
        "state_alone": [7, 2],
    }


def test_interrupted_run_on_two_devices_goes_on_exactly(found):
    assert found["run"] == {"status": 130, "equal": True}

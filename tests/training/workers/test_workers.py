"""What workers say of each other, between threads that stand in for processes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_attn.training.workers import workers as workers
from keras_attn.training.workers.cluster import Cluster
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

WORKERS = ("a:1", "b:2", "c:3")


class Told(workers.Workers):
    """One of three workers, whose values the others see."""

    rows = np.zeros((3, 0))
    meeting = threading.Barrier(3, timeout=20)

    def __init__(self, index):
        self.workers, self.index, self.is_chief = 3, index, index == 0
        self._cluster = Cluster(WORKERS, index)

    def gather(self, values):
        if self.meeting.wait() == 0:
            Told.rows = np.zeros((3, len(values)))
        self.meeting.wait()
        Told.rows[self.index] = values
        self.meeting.wait()
        found = Told.rows.copy()
        self.meeting.wait()
        return found


def errors(call):
    """The error of each worker, as text."""
    with ThreadPoolExecutor(3) as pool:
        return [str(one.exception()) for one in [pool.submit(call, Told(i)) for i in range(3)]]


def test_settings_that_differ_are_named():
    settings = [{"task": "causal_lm", "training.seed": 1, "model": {"a": 1}} for _ in range(3)]
    assert errors(lambda one: one.require_equal_settings(settings[one.index])) == ["None"] * 3
    settings[1]["training.seed"], settings[2]["model"] = 2, {"a": 2}
    found = errors(lambda one: one.require_equal_settings(settings[one.index]))
    told = "worker 1 has another training.seed; worker 2 has another model."
    assert found == [f"All workers must have the chief's settings. Received: {told}"] * 3


def test_folders_that_are_not_shared_are_told_to_all(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_SECONDS_TO_APPEAR", 0.1)
    folders = [tmp_path / "run"] * 3
    folders[0].mkdir()
    assert errors(lambda one: one.require_shared(folders[one.index])) == ["None"] * 3
    folders[1] = tmp_path / "other"
    found = errors(lambda one: one.require_shared(folders[one.index]))
    for error, folder in zip(found, folders, strict=True):
        assert error == (
            "The run folder must be on a disk that all workers share: worker 1 (b:2) does not see "
            f"the chief's. Received: {str(folder)!r}."
        )
    assert not list(tmp_path.rglob(".shared-*"))


def test_a_lone_process_shares_with_nobody_and_data_are_compared(tmp_path):
    alone = Told(0)
    alone.workers = 1
    alone.require_shared(tmp_path / "nowhere")
    alone.gather = lambda values: np.array([[1.0], [1.0], [2.0]])
    refused("chief's training data", alone.require_equal, "training data", 1)

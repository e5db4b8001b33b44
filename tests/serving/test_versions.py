"""A new version takes over without a failed request; one that cannot be loaded changes nothing."""

import asyncio
import shutil
import time

import pytest
import tensorflow as tf

from keras_attn.benchmarks.http_load import post, put_load
from keras_attn.export import SavedModelError, export_saved_model, warmup
from keras_attn.serving import ModelSettings
from keras_attn.serving.loaded_version import load_session
from tests.export.toy import ToyTask
from tests.serving.conftest import LIMITS, running
from tests.serving.http import ask, predict, predicted

pytestmark = pytest.mark.tensorflow

SETTINGS = ModelSettings(limits=LIMITS, xla=True, poll_seconds=0.05)


def until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def states(served, model="toy"):
    _, answer = ask(served, f"/v1/models/{model}")
    return {int(version["version"]): version["state"] for version in answer["model_version_status"]}


class OtherTask(ToyTask):
    """Tells its answers apart: scores are doubled."""

    def __init__(self):
        super().__init__()
        self.weights.assign(2 * self.weights)


@pytest.fixture
def folder(models, tmp_path):
    """A model folder with version 1, and a newer version beside it that is not in it yet."""
    shutil.copytree(models["toy"], tmp_path / "toy")
    export_saved_model(OtherTask(), tmp_path / "newer", n_best=2)
    return tmp_path / "toy"


def put_newer(folder, version):
    shutil.copytree(folder.parent / "newer" / "1", folder.parent / "whole")
    (folder.parent / "whole").rename(folder / str(version))


@pytest.mark.parametrize("requests", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_new_version_under_load_fails_no_request(folder, requests):
    request = post("/v1/models/toy:predict", b'{"instances": ["abc"]}')

    async def scenario(served):
        load = asyncio.create_task(put_load(served.rest, [request], 8, seconds=600, most=requests))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(put_newer, folder, 2)
        return await load

    with running({"toy": folder}, SETTINGS) as served:
        before = predicted(served, "toy", instances=["abc"])["predictions"][0]["score"]
        load = asyncio.run(scenario(served))
        assert load.failed == 0
        assert len(load.latencies) == requests
        until(lambda: states(served) == {1: "END", 2: "AVAILABLE"})
        after = predicted(served, "toy", instances=["abc"])["predictions"][0]["score"]
        assert (before, after) == (30, 60)
        assert ask(served, "/v1/models/toy/versions/1:predict", {"instances": ["a"]})[0] == 404


def test_the_highest_version_is_served_and_a_lower_one_when_it_is_gone(folder):
    put_newer(folder, 10)
    with running({"toy": folder}, SETTINGS) as served:
        assert states(served) == {10: "AVAILABLE"}
        shutil.rmtree(folder / "10")
        until(lambda: states(served) == {1: "AVAILABLE", 10: "END"})
        # Rather an old version than none.
        shutil.rmtree(folder / "1")
        time.sleep(0.2)
        assert predict(served, "toy", instances=["a"])[0] == 200


def test_a_version_that_cannot_be_loaded_changes_nothing(folder):
    lines = []
    with running({"toy": folder}, SETTINGS, lines.append) as served:
        half = shutil.copytree(folder / "1", folder.parent / "half")
        variables = (half / "variables").rename(folder.parent / "variables")
        half.rename(folder / "2")
        until(lambda: states(served) == {1: "AVAILABLE", 2: "END"})
        [status] = ask(served, "/v1/models/toy/versions/2")[1]["model_version_status"]
        assert "has no variables" in status["status"]["error_message"]
        assert predict(served, "toy", instances=["a"])[0] == 200
        time.sleep(0.3)
        assert sum("cannot be loaded" in line for line in lines) == 1
        # When it is whole it is taken.
        variables.rename(folder / "2" / "variables")
        until(lambda: states(served) == {1: "END", 2: "AVAILABLE"})


def test_warm_up_records_are_replayed_and_may_not_fail(models, tmp_path):
    folder = shutil.copytree(models["tiny"] / "1", tmp_path / "1")
    array = tf.constant(["a" * 12]).numpy()
    warmup.write_warmup(folder, [("serving_default", {"text": array})])
    with pytest.raises(SavedModelError, match="at most 10 tokens"):
        load_session(folder, xla=True)

"""What a resumed run keeps: its model whatever is damaged, its settings, and time of its own."""

import itertools
import shutil
import signal
import types

import numpy as np
import pytest
import yaml

from keras_attn.training import TrainingInterrupted
from keras_attn.training import run as job
from keras_attn.training.distillation_settings import DistillationSettings
from keras_attn.training.loop.ending import TimePlan
from keras_attn.training.reporting import recorder
from keras_attn.training.resolving import MAY_CHANGE, check_changes, without_automatic
from keras_attn.training.run_settings import RunSettings, flat
from keras_attn.training.state import TrainingState
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.training.loop.test_trainer import Scripted, Signal
from tests.training.made_run import run_settings, write_parts
from tests.training.stand_in import StandInTask, metrics_rows, train

pytestmark = pytest.mark.tensorflow

VALUES = (9, 4, 6, 5)  # of four epochs of 8 updates: the second is the best, not the last
NUMBERS = {"epochs": 4, "metric": "per"}


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def checkpoint(run, name):
    return run / "checkpoints" / name


DAMAGES = {
    "best deleted": lambda run: shutil.rmtree(checkpoint(run, "best")),
    "best damaged": lambda run: damage(checkpoint(run, "best") / "state.safetensors"),
    "best's state damaged": lambda run: damage(checkpoint(run, "best") / "state.json"),
    "last damaged": lambda run: damage(newest(run) / "state.safetensors"),
    "last's state damaged": lambda run: damage(newest(run) / "state.json"),
    "metrics damaged": lambda run: (run / "metrics.csv").write_bytes(b"\xff\x00"),
    "summary deleted": lambda run: (run / "summary.json").unlink(missing_ok=True),
    "task deleted": lambda run: shutil.rmtree(run / "task"),
    "task damaged": lambda run: (run / "task" / "model.weights.h5").write_bytes(b"no weights"),
}


def newest(run):
    return max((run / "checkpoints").glob("step-*"))


def saved_weights(run):
    return StandInTask.load(run / "task").backbone.get_weights()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("finished") / "run"
    train(run, Scripted(*VALUES), **NUMBERS)
    return run


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """In the last epoch."""
    run = tmp_path_factory.mktemp("interrupted") / "run"
    with pytest.raises(TrainingInterrupted):
        train(run, Scripted(*VALUES), callbacks=[Signal(signal.SIGINT, 27)], **NUMBERS)
    return run


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_damage_never_replaces_the_model_by_a_worse_one(request, tmp_path, state, what, capsys):
    run, whole = tmp_path / "run", request.getfixturevalue("finished")
    shutil.copytree(request.getfixturevalue(state), run)
    expected = saved_weights(whole)
    DAMAGES[what](run)
    # Only what is not there any more is measured again.
    again = {"finished": "last" in what, "interrupted": True}[state]
    _, result = train(run, Scripted(*VALUES[3:] * again), resume=True, **NUMBERS)
    assert (result.kept, result.best_step, result.value) == ("best", 16, 4.0)
    np.testing.assert_equal(saved_weights(run), expected)
    assert metrics_rows(run) == metrics_rows(whole)
    said = capsys.readouterr().out
    assert ("is damaged" in said) == (what.startswith(("best", "last")))
    assert not (what.startswith("best") and f"{run / 'task'}" not in said)


def test_a_sound_finished_run_is_left_alone(finished):
    def times():
        return {path: path.stat().st_mtime_ns for path in (finished / "task").rglob("*")}

    before = times()
    train(finished, Scripted(), resume=True, **NUMBERS)
    assert times() == before


@pytest.mark.parametrize("state", ["finished", "interrupted"])
@pytest.mark.parametrize("left", ["best", "nothing"])
def test_a_run_without_checkpoints_keeps_its_model(request, tmp_path, state, left):
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(state), run)
    for folder in (run / "checkpoints").iterdir():
        if left == "nothing" or folder.name != "best":
            shutil.rmtree(folder)
    before = saved_weights(run)
    with pytest.raises(UserError, match=r"are gone, and training .* would replace its model"):
        train(run, Scripted(*VALUES), resume=True, **NUMBERS)
    np.testing.assert_equal(saved_weights(run), before)


def test_an_average_that_was_kept_stays(tmp_path):
    numbers = NUMBERS | {"epochs": 3, "average_last": 2}
    _, result = train(tmp_path / "run", Scripted(9, 8, 7, 5), **numbers)
    assert result.kept == "average"
    before = saved_weights(tmp_path / "run")
    shutil.rmtree(checkpoint(tmp_path / "run", "step-00000016"))
    _, again = train(tmp_path / "run", Scripted(), resume=True, **numbers)
    assert again == result
    np.testing.assert_equal(saved_weights(tmp_path / "run"), before)


@pytest.fixture
def clock(monkeypatch):
    """Every look at the clock takes a second."""
    seconds = itertools.count()
    monkeypatch.setattr(
        recorder, "time", types.SimpleNamespace(monotonic=lambda: float(next(seconds)))
    )


@pytest.mark.usefixtures("clock")
def test_minutes_are_those_of_each_start(tmp_path):
    numbers = {"epochs": 9, "metric": "per", "max_minutes": 0.2}
    steps = []
    for _ in range(3):
        _, result = train(tmp_path / "run", lambda: {"per": 1.0}, resume=bool(steps), **numbers)
        steps.append(result.step)
    assert 0 < steps[0] < steps[1] < steps[2]


@pytest.mark.usefixtures("clock")
def test_a_cosine_ends_with_the_time(tmp_path):
    numbers = {"schedule": "cosine", "warmup_steps": 3, "epochs": 90}
    _, result = train(tmp_path / "run", max_minutes=3.0, **numbers)
    assert 30 < result.step < 180
    rates = [float(row["learning_rate"]) for row in metrics_rows(tmp_path / "run")]
    assert max(rates) > 0.04
    assert rates[-1] < 0.0005
    # With more time than it needs it is the plain one.
    numbers["epochs"] = 2
    train(tmp_path / "long", max_minutes=1e6, **numbers)
    train(tmp_path / "plain", **numbers)
    long, plain = (
        [row["learning_rate"] for row in metrics_rows(tmp_path / name)]
        for name in ("long", "plain")
    )
    assert long == plain


def test_a_plan_of_updates_in_a_time():
    """Two updates a second, after a first that takes ten; then one a second."""
    plan, state = TimePlan(100.0, TrainingState()), TrainingState()
    assert plan.plan(state, 0.0) == 0
    state.step = 1
    assert plan.plan(state, 10.0) == 0
    state.step = 11
    assert plan.plan(state, 15.0) == 11 + 2 * 85
    assert plan.plan(state, 16.0) == 0
    state.step = 31
    assert plan.plan(state, 40.0) == 31 + 60
    state.step = 91
    assert plan.plan(state, 100.0) == 91
    # A run that is resumed goes by what it knows, and makes an update at least.
    state = TrainingState(step=50, seconds=100.0)
    assert TimePlan(20.0, state).plan(state, 0.0) == 60
    assert TimePlan(1e-9, state).plan(state, 0.0) == 51


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("words"))


@pytest.mark.slow
def test_the_test_is_measured_when_a_run_that_was_out_of_time_goes_on(words, tmp_path):
    run, settings = tmp_path / "run", run_settings(words, epochs=1, max_minutes=1e-9)
    job.train(run, settings)
    assert [row["step"] for row in metrics_rows(run)] == ["1"]
    (run / "results.json").unlink()
    job.train(run, {"training": {"max_minutes": 60.0}}, resume=True)
    assert int(metrics_rows(run)[-1]["step"]) > 1
    assert (run / "results.json").exists()
    assert yaml.safe_load((run / "run.yaml").read_text())["training"]["max_minutes"] == 60.0
    # run.yaml is needed to go on.
    (run / "run.yaml").unlink()
    refused(r"cannot be resumed without its run\.yaml", job.train, run, settings, resume=True)


SETTINGS = RunSettings.resolve(
    run_settings("words.tsv")
    | {"decoding": {"beams": 2}, "tokenizers": {"source": {"kind": "characters"}}}
)
OTHER = {bool: lambda value: not value, int: lambda value: value + 1}


@pytest.mark.parametrize("name", sorted(flat(SETTINGS.to_dict())))
def test_every_setting_may_change_or_is_refused_by_name(name):
    before = SETTINGS.to_dict()
    now = yaml.safe_load(yaml.safe_dump(before))
    *sections, last = name.split(".")
    place = now
    for section in sections:
        place = place[section]
    value = place[last]
    place[last] = OTHER.get(type(value), lambda value: "something else")(value)
    if name in MAY_CHANGE:
        check_changes(before, now)
        return
    refused(rf"keeps these settings.* {name}=.* run\.yaml", check_changes, before, now)


def test_the_table_names_settings_that_exist():
    taught = SETTINGS.replace(distillation=DistillationSettings(["runs/a"]))
    assert set(flat(taught.to_dict())) >= MAY_CHANGE


def test_what_is_left_to_be_chosen_is_what_the_run_chose():
    layer = {"data": {"max_source_length": None, "train": ["a"]}, "training": {"jit": "auto"}}
    layer["training"] |= {"epochs": None, "metric_goal": "auto", "strategy": "auto"}
    assert without_automatic(layer) == {
        "data": {"train": ["a"]},
        "training": {"epochs": None, "strategy": "auto"},
    }

import keras_tuner
import pytest

from keras_attn.models import PRESETS
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.tuning.search_space import SearchSpace
from keras_attn.tuning.spaces import SPACES, family_space
from tests.refusals import refused

ENTRIES = {
    "training.learning_rate": {"min": "1e-4", "max": 1e-2, "log": True},
    "model.num_layers": {"min": 1, "max": 3},
    "model.hidden_dim": [32, 64],
    "model.norm_first": True,
    "positions": {"sinusoidal": {}, "rotary": {"model.rotary_positions": True}},
}


def test_declares_and_nests():
    hyperparameters = keras_tuner.HyperParameters()
    space = SearchSpace(ENTRIES)
    settings = space.draw(hyperparameters)
    # The first value, the least number, the first group.
    assert settings == {
        "training": {"learning_rate": 1e-4},
        "model": {"num_layers": 1, "hidden_dim": 32, "norm_first": True},
    }
    declared = {one.name: one.get_config() for one in hyperparameters.space}
    assert set(declared) == set(ENTRIES) - {"model.norm_first"} == set(space.names)
    rate = declared["training.learning_rate"]
    assert (rate["min_value"], rate["max_value"], rate["sampling"]) == (1e-4, 1e-2, "log")
    assert declared["model.hidden_dim"]["values"] == [32, 64]
    hyperparameters.values |= {"positions": "rotary", "model.num_layers": 3}
    model = space.draw(hyperparameters)["model"]
    assert (model["rotary_positions"], model["num_layers"]) == (True, 3)


def test_restricted_entries_replace_and_add():
    space = SearchSpace(ENTRIES).restricted({"model.num_layers": 2, "model.num_heads": [2, 4]})
    assert "model.num_layers" not in space.names
    assert space.names[-1] == "model.num_heads"
    settings = space.draw(keras_tuner.HyperParameters())
    assert (settings["model"]["num_layers"], settings["model"]["num_heads"]) == (2, 2)
    assert SearchSpace(space.to_dict()).to_dict() == space.to_dict()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"modle.num_layers": [1]}, "`section` must be one of .* Did you mean 'model'?"),
        ({"model": [1]}, "must be SECTION.NAME. Received: name='model'"),
        ({"model.dropout": []}, "must be of one kind"),
        ({"model.dropout": [0.1, "high"]}, "must be of one kind"),
        ({"model.dropout": {"min": 0.3, "max": 0.1}}, "needs min below max"),
        ({"model.dropout": {"min": 0, "max": 1.0, "log": True}}, "above 0 if `log` is true"),
        ({"model.dropout": {"min": "low", "max": 1.0}}, "must be numbers. Received: 'low'"),
        ({"model.dropout": {"min": 0, "max": 1, "steps": 3}}, "Did you mean 'step'?"),
        ({"positions": {"rotary": 3}}, "a range with min and max, or groups of settings"),
        ({"positions": {}}, "at least one group"),
        ({"positions": {"rotary": {"rotary_positions": True}}}, "`section` must be one of"),
    ],
)
def test_mistakes(entries, message):
    refused(message, SearchSpace, entries)


def test_every_family_has_a_space():
    assert set(SPACES) == {preset.family for preset in PRESETS.values()}


@pytest.mark.parametrize("family", list(SPACES))
def test_every_value_of_a_family_is_a_setting_of_its_runs(family):
    preset = next(name for name, preset in PRESETS.items() if preset.family == family)
    base = {"preset": preset, "data": {"train": ["words.tsv"]}}
    hyperparameters = keras_tuner.HyperParameters()
    space = family_space(family)
    space.draw(hyperparameters)
    first = dict(hyperparameters.values)
    for one in hyperparameters.space:
        for value in one.values if hasattr(one, "values") else [one.min_value, one.max_value]:
            hyperparameters.values = first | {one.name: value}
            settings = RunSettings.resolve(base, space.draw(hyperparameters))
            TASK_RUNS[settings.task].check(settings)


def test_unknown_family():
    refused("`family` must be one of", family_space, "Transfomer")


def test_values_are_those_that_the_user_wrote():
    space = SearchSpace(
        {"model.norm_first": [True, False], "model.dropout": {"min": 0.0, "max": 0.4, "step": 0.05}}
    )
    values = keras_tuner.HyperParameters()
    space.draw(values)
    # As KerasTuner has them: the sixth step of 0.05, and a whole number.
    values.values = {"model.norm_first": 1, "model.dropout": 6 * 0.05}
    assert values.values["model.dropout"] != 0.3
    drawn = space.draw(values)["model"]
    assert drawn["norm_first"] is True
    assert drawn["dropout"] == 0.3
    plain = space.plain(values.values)
    assert plain == {"model.norm_first": True, "model.dropout": 0.3}
    assert plain["model.norm_first"] is True

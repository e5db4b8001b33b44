import math

import pytest
import yaml

from keras_attn.training import TrainingSettings
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.state import TrainingState
from tests.refusals import refused


def test_dict_round_trip():
    settings = TrainingSettings(epochs=None, steps=7, learning_rate=0.25, metric="per", jit="on")
    assert TrainingSettings.from_dict(settings.to_dict()) == settings
    assert settings.to_dict()["steps"] == 7


def test_values_as_yaml_leaves_them():
    settings = TrainingSettings.from_dict({"epsilon": "1e-9", "clip_norm": 2, "jit": False})
    assert (settings.epsilon, settings.clip_norm, settings.jit) == (1e-9, 2.0, "off")
    assert type(settings.clip_norm) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rates": 1}, r"`learning_rates`\. Did you mean `learning_rate`\?.*=1\."),
        ({"qqq": 1}, r"no training setting `qqq`\. Received: qqq=1\."),
        ({"epochs": "3"}, r"`epochs` must be a whole number or nothing.*epochs='3'"),
        ({"epochs": True}, r"epochs=True"),
        ({"epochs": 0}, r"`epochs` must be a positive.*epochs=0"),
        ({"epochs": None}, r"epochs=None, steps=None"),
        ({"batch_tokens": 2.5}, r"`batch_tokens` must be a whole number\..*2\.5"),
        ({"learning_rate": "fast"}, r"`learning_rate` must be a number\..*'fast'"),
        ({"learning_rate": None}, r"learning_rate=None"),
        ({"learning_rate": -1}, r"`learning_rate` must be above 0.*learning_rate=-1\.0"),
        ({"learning_rate": ".inf"}, r"`learning_rate` must be a number\..*'\.inf'"),
        ({"learning_rate": "inf"}, r"`learning_rate` must be a finite number.*learning_rate=inf"),
        ({"learning_rate": math.nan}, r"`learning_rate` must be a finite.*learning_rate=nan"),
        ({"max_minutes": math.inf}, r"`max_minutes` must be a finite number.*max_minutes=inf"),
        ({"clip_norm": math.nan}, r"`clip_norm` must be a finite number.*clip_norm=nan"),
        ({"label_smoothing": 1.0}, r"label_smoothing=1\.0"),
        ({"patience": -1}, r"`patience` must be at least 0.*patience=-1"),
        ({"deterministic": 1}, r"`deterministic` must be true or false.*deterministic=1"),
        ({"schedule": "cosin"}, r"Did you mean 'cosine'.*schedule='cosin'"),
        ({"precision": "float8"}, r"precision='float8'"),
        ({"jit": "maybe"}, r"jit='maybe'"),
        ({"strategy": "tpus"}, r"strategy='tpus'"),
    ],
)
def test_mistakes_are_told_with_their_values(values, message):
    refused(message, TrainingSettings.from_dict, values)


OLD_NAMES = {"parts": 3, "join_seconds": 7.0, "lost_seconds": 5.0}
NEW_NAMES = {"cpu_shards": 3, "join_timeout": 7.0, "heartbeat_timeout": 5.0}


def test_old_names_are_read_and_warn():
    expected = TrainingSettings(**NEW_NAMES)
    for make in (TrainingSettings.from_dict, lambda values: TrainingSettings(**values)):
        with pytest.warns(DeprecationWarning, match="is now") as caught:
            assert make(OLD_NAMES) == expected
        assert str(caught[0].message).startswith("`parts` is now `cpu_shards`")
        assert len(caught) == len(OLD_NAMES)
    assert set(OLD_NAMES).isdisjoint(expected.to_dict())


def test_a_new_name_counts_before_an_old_one():
    with pytest.warns(DeprecationWarning, match="`parts` is now `cpu_shards`"):
        assert TrainingSettings(parts=3, cpu_shards=2).cpu_shards == 2


def test_checkpoints_with_old_names_are_read(recwarn):
    state = TrainingState.from_dict({"step": 4, "settings": OLD_NAMES | {"seed": 2}})
    assert state.settings == NEW_NAMES | {"seed": 2}
    assert not recwarn


def test_layers_with_old_names_are_read(tmp_path, recwarn):
    """Those of a run in silence, those of users with a warning; a later layer counts more."""
    base = {"preset": "g2p_small", "data": {"train": ["pairs.tsv"]}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(base | {"training": OLD_NAMES}))
    read = RunSettings.read(tmp_path / "run.yaml").training
    assert (read.cpu_shards, read.join_timeout, read.heartbeat_timeout) == (3, 7.0, 5.0)
    assert not recwarn
    with pytest.warns(DeprecationWarning, match="`training.parts` is now `training.cpu_shards`"):
        given = RunSettings.resolve(base, {"training": NEW_NAMES}, {"training": {"parts": 4}})
    assert (given.training.cpu_shards, given.training.join_timeout) == (4, 7.0)

import math

import pytest

from keras_attn.training import TrainingSettings
from keras_attn.validation import UserError


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
    with pytest.raises(UserError, match=message):
        TrainingSettings.from_dict(values)

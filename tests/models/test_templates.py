"""Models refuse layers with weights where they build their own from a layer's configuration."""

import inspect

import keras
import pytest

from keras_attn import models
from keras_attn.layers import MultiHeadAttention
from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.validation import UserError
from tests.harness import numbers

X = numbers(1, 2, 5, 6)
SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
# What comes before the sizes.
FIRST = {
    models.PatchEncoder: ((6, 10), (3, 5)),
    models.FeatureEncoder: (5,),
    models.Forecaster: (7, 5),
}
OTHERS = {
    models.RecurrentSeq2Seq: {"num_layers": 1, "hidden_dim": 6},
    models.Bert: SIZES | {"max_length": 13},
    models.GPT2: SIZES | {"max_length": 13},
}


HEADS = (models.SequenceClassifier, models.TokenClassifier)


def templates():
    kinds = [getattr(models, name) for name in models.__all__]
    for kind in kinds:
        if inspect.isclass(kind) and issubclass(kind, keras.Model) and kind not in HEADS:
            for parameter in inspect.signature(kind.__init__).parameters.values():
                if "Layer" in str(parameter.annotation):
                    yield kind, parameter.name


@pytest.mark.parametrize(("kind", "name"), list(templates()))
def test_a_layer_with_weights_is_refused(kind, name):
    layer = AdditiveAttention(3) if kind is models.RecurrentSeq2Seq else MultiHeadAttention(2, 3)
    if name == "front_end":
        layer = keras.layers.Dense(6)
    first, sizes = FIRST.get(kind, (11,)), OTHERS.get(kind, SIZES)
    kind(*first, **sizes, **{name: layer})
    assert not layer.built
    layer(X) if name == "front_end" else layer(X, X)
    with pytest.raises(UserError, match=f"must be an unbuilt layer.*weights={len(layer.weights)}"):
        kind(*first, **sizes, **{name: layer})


def test_the_table_is_not_empty():
    assert len(list(templates())) == 17
    assert not [name for kind, name in templates() if kind is models.Bert]  # it takes names too

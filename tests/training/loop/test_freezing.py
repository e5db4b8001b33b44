"""Weights that training leaves alone: which ones a pattern means, and for how long."""

import numpy as np
import pytest

from keras_attn.models import Bert, SequenceClassifier
from keras_attn.training import TrainingSettings
from keras_attn.training.loop.freezing import frozen
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def model():
    encoder = Bert(11, 3, 6, 2, 7, max_length=5, dropout=0.1, pooler=False)
    return SequenceClassifier(encoder, 2)


def paths(weights):
    return {weight.path for weight in weights}


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (["embedding/*"], lambda path: path == "embedding/embeddings"),
        (["*embeddings"], lambda path: path.endswith("/embeddings")),
        (["block_[01]/*"], lambda path: path.startswith(("block_0/", "block_1/"))),
        (
            ["norm/gamma", "block_?/attention/*"],
            lambda path: path == "norm/gamma" or "/attention/" in path,
        ),
        (["*/bias", "block_0/*"], lambda path: path.endswith("/bias") or "block_0/" in path),
    ],
)
def test_what_patterns_mean(model, patterns, chosen):
    before = paths(model.trainable_variables)
    states = len(model.non_trainable_variables)
    expected = {path for path in before if chosen(path)}
    with frozen(model, patterns) as told:
        assert before - paths(model.trainable_variables) == expected
        assert len(model.non_trainable_variables) == states + len(expected)
        sizes = {weight.path: int(np.prod(weight.shape)) for weight in model.weights}
        assert told == (
            f"Frozen: {len(expected)} of {len(before)} weights, "
            f"{sum(sizes[path] for path in expected):,} of "
            f"{sum(sizes[path] for path in before):,} parameters."
        )
    assert paths(model.trainable_variables) == before


def test_without_patterns_nothing_is_frozen(model):
    before = paths(model.trainable_variables)
    with frozen(model, []) as told:
        assert (told, paths(model.trainable_variables)) == ("", before)


def test_an_error_ends_it_too(model):
    before = paths(model.trainable_variables)
    with pytest.raises(KeyError), frozen(model, ["block_0/*"]):
        raise KeyError
    assert paths(model.trainable_variables) == before


def test_what_the_user_froze_stays_so(model):
    weight = model.encoder.embedding.embeddings
    weight.trainable = False
    try:
        with frozen(model, ["block_0/*"]):
            pass
        assert not weight.trainable
        with pytest.raises(UserError, match="must match weights that are trained"):
            frozen(model, ["embedding/*"]).__enter__()
    finally:
        weight.trainable = True


def test_mistakes(model):
    with pytest.raises(UserError) as caught, frozen(model, ["block_0/*", "encoder/layer_0*"]):
        pass
    assert str(caught.value) == (
        "`freeze` must match weights that are trained, as 'embedding/*', 'segments/*', "
        "'positions/*', 'norm/*', 'block_0/*', 'block_1/*', 'block_2/*', 'output/*' do. "
        "Received: 'encoder/layer_0*'."
    )
    assert all(weight.trainable for weight in model.encoder.blocks[0].weights[:1])
    with pytest.raises(UserError, match="leave weights to train. Received: freeze=.'.'., wei"):
        frozen(model, ["*"]).__enter__()


def test_as_a_setting():
    assert TrainingSettings().freeze == []
    assert TrainingSettings(freeze="embedding/*").to_dict()["freeze"] == ["embedding/*"]
    for value in (3, ["a", 3], None):
        refused("`freeze` must be a text or a list of texts. Rec", TrainingSettings, freeze=value)

"""What a model is called with is known by name: nothing stands in another's place."""

import keras
import numpy as np
import pytest

from keras_attn.models import SequenceClassifier, TokenClassifier, TransformerEncoder
from keras_attn.validation import UserError
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.every_family import EVERY, SIZES, TOKENS, bert
from tests.refusals import message_of, refused

WITH_OPTIONAL = ("Bert", "ETC", "MaskedLanguageModel", "FeatureEncoder")
FAMILIES = {type(make()).__name__: (make, inputs) for make, inputs in EVERY.values()}


def wrong_inputs(model, inputs):
    """What is not what the model takes, by what is wrong with it."""
    required = [name for name in model.input if name not in model.optional_inputs]
    one = inputs[required[0]]
    return {
        "extra": inputs | {"aaa": one},
        "misspelled": {f"{name}s": value for name, value in inputs.items()},
        "missing": {name: x for name, x in inputs.items() if name != required[0]} | {"aaa": one},
        "list": list(inputs.values()),
        "empty": {},
    }


@pytest.mark.parametrize("name", FAMILIES)
def test_inputs_of_other_names_are_refused(name):
    make, inputs = FAMILIES[name]
    model = make()
    model.compile("sgd", "mse")
    for given in wrong_inputs(model, inputs).values():
        message = message_of(model, given)
        received = repr(sorted(given)) if isinstance(given, dict) else "'list'"
        assert message.endswith(f"Received: inputs={received}.")
        assert all(repr(key) in message for key in model.input)


@pytest.mark.parametrize("how", ["predict", "fit", "evaluate"])
def test_classifier_of_tokens_refuses_segments_that_it_would_drop(how):
    model = SequenceClassifier(TransformerEncoder(TOKENS["token_ids"].max() + 1, **SIZES), 3)
    model.compile("sgd", "mse")
    given = TOKENS | {"segment_ids": np.minimum(TOKENS["token_ids"], 1)}
    targets = [] if how == "predict" else [np.zeros((2, 3))]
    with pytest.raises(UserError, match=r"a dict of 'token_ids'\. Received: .*'segment_ids', 'tok"):
        getattr(model, how)(given, *targets, verbose=0)


@pytest.mark.parametrize("head", [SequenceClassifier, TokenClassifier])
def test_heads_hand_segments_to_an_encoder_that_has_some(head):
    model, segments = head(bert(), 3), np.minimum(TOKENS["token_ids"], 1)
    spread_weights(model, 1)
    plain = numpy(model(TOKENS))
    np.testing.assert_array_equal(numpy(model(TOKENS | {"segment_ids": 0 * segments})), plain)
    assert np.abs(numpy(model(TOKENS | {"segment_ids": segments})) - plain).max() > 1e-3


@pytest.mark.parametrize("name", FAMILIES)
def test_a_lone_input_needs_no_name(name):
    make, inputs = FAMILIES[name]
    model = make()
    required = [key for key in model.input if key not in model.optional_inputs]
    if len(required) > 1:
        refused("a dict of", model, inputs[required[0]])
        return
    expected = model({required[0]: inputs[required[0]]})
    np.testing.assert_array_equal(numpy(model(inputs[required[0]])), numpy(expected))


def test_order_of_a_dict_does_not_matter():
    model = bert()
    given = {"segment_ids": np.minimum(TOKENS["token_ids"], 1), **TOKENS}
    expected = numpy(model(dict(reversed(given.items()))))
    np.testing.assert_array_equal(numpy(model(given)), expected)
    symbolic = {name: keras.Input((None,), dtype="int32", name=name) for name in given}
    outer = keras.Model(symbolic, model(symbolic))
    np.testing.assert_array_equal(numpy(outer(given)), expected)


@pytest.mark.parametrize("name", WITH_OPTIONAL)
def test_optional_inputs_may_be_left_out_of_a_stateless_call(name):
    make, inputs = FAMILIES[name]
    model = make()
    given = {key: x for key, x in inputs.items() if key not in model.optional_inputs}
    variables = [
        [v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables)
    ]
    found, _ = model.stateless_call(*variables, given)
    expected = keras.tree.flatten(model(given))
    for one, other in zip(keras.tree.flatten(found), expected, strict=True):
        np.testing.assert_allclose(numpy(one), numpy(other), rtol=1e-5, atol=1e-6)

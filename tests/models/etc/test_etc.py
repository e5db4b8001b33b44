"""ETC: what tokens and units see of each other."""

import keras
import numpy as np
import pytest

from keras_attn.layers import GlobalLocalPieces
from keras_attn.models import ETC, SequenceClassifier
from tests.generation.toy_models import compiled
from tests.harness import assert_saved, numpy
from tests.layers.judges import spread_weights
from tests.models.families import SMALL
from tests.refusals import refused

SIZES = SMALL | {"radius": 2, "num_units": 4, "unit_length": 3, "max_distance": 2}
IDS = np.random.default_rng(1).integers(1, 11, (2, 11)).astype("int32")
IDS[1, 7:] = 0
UNITS = np.array([[0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3]] * 2, "int32")


def built(**arguments):
    return spread_weights(ETC(11, **(SIZES | arguments)))


def run(model, token_ids=IDS, unit_ids=UNITS):
    call = compiled(lambda t, u: model({"token_ids": t, "unit_ids": u}))
    return numpy(call(np.asarray(token_ids), np.asarray(unit_ids)))


def test_one_block_by_its_layers_with_labels_written_out():
    model = built(num_layers=1, norm_first=True)
    labels = np.zeros((2, 11, 4), "int32"), np.zeros((2, 4, 11), "int32")
    for row, place, unit in np.ndindex(2, 11, 4):
        its_own = UNITS[row, place] == unit and IDS[row, place] != 0
        # After the labels of the distances from -2 to 2.
        labels[0][row, place, unit] = 5 if its_own else 6
        labels[1][row, unit, place] = 7 if its_own else 8
    block = model.blocks[0]
    tokens, units = model.embedding(IDS), model.unit_embedding(np.zeros((2, 4), "int32"))
    tokens, units = block(
        tokens,
        units,
        padding_mask=IDS != 0,
        # Of the second text nothing is left of the last unit.
        global_padding_mask=np.array([[True] * 4, [True, True, True, False]]),
        labels=GlobalLocalPieces(local_to_global=labels[0], global_to_local=labels[1]),
    )
    found = model.encode(IDS, UNITS)
    for ours, theirs in zip(found, (tokens, units), strict=True):
        np.testing.assert_allclose(numpy(ours), numpy(model.norm(theirs)), atol=1e-5)
    np.testing.assert_allclose(run(model), numpy(found[0]), atol=1e-5)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.slow
def test_what_is_far_is_seen_by_way_of_units(num_layers):
    model = built(num_layers=num_layers)
    changed = IDS.copy()
    changed[0, 1] = changed[0, 1] % 10 + 1
    moved = np.abs(run(model, changed) - run(model))[0].max(-1) > 1e-6
    near = np.arange(11) <= 3
    np.testing.assert_array_equal(moved, near if num_layers == 1 else np.ones(11, bool))


def test_units_matter_and_are_of_equal_length_unless_told():
    model = built()
    assert np.abs(run(model) - run(model, unit_ids=UNITS * 0)).max() > 1e-3
    threes = np.tile(np.arange(11) // 3, (2, 1))
    np.testing.assert_allclose(
        numpy(model({"token_ids": IDS})), run(model, unit_ids=threes), atol=1e-5
    )
    beyond = np.where(threes == 3, 9, threes)
    np.testing.assert_allclose(run(model, unit_ids=beyond), run(model, unit_ids=threes), atol=1e-6)


def test_padding_never_changes_a_real_token():
    model = built()
    alone = run(model, IDS[1:, :7], UNITS[1:, :7])
    np.testing.assert_allclose(run(model)[1, :7], alone[0], atol=1e-5)
    assert np.isfinite(run(model, IDS * 0)).all()


@pytest.mark.slow
def test_a_classifier_on_top_is_saved_and_trained(tmp_path):
    model = SequenceClassifier(ETC(11, **SIZES), 3)
    inputs = {"token_ids": IDS}
    assert_saved(model, inputs, tmp_path)
    before = [numpy(weight) for weight in model.trainable_weights]
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(inputs, np.array([0, 2]), epochs=2, verbose=0)
    still = [
        weight.path
        for weight, old in zip(model.trainable_weights, before, strict=True)
        if np.array_equal(numpy(weight), old)
    ]
    assert not still


def test_presets_and_mistakes():
    assert ETC.from_preset("etc_tiny", 11, num_layers=1).get_config()["num_units"] == 64
    refused("`num_heads` must divide `hidden_dim`", built, num_heads=5)
    refused("`unit_length` must be a positive integer", built, unit_length=0)

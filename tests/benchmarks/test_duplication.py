import keras
import numpy as np
import pytest

from keras_attn.benchmarks import duplication
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


def test_what_is_to_be_predicted():
    ids, labels = duplication.duplicated(3, 10, np.random.default_rng(1))
    np.testing.assert_array_equal(ids[:, :5], ids[:, 5:])
    assert (ids[:, [0, 5]] == 1).all()
    assert ids[:, 1:5].min() >= 2
    assert ids.max() <= 128
    # After the second separator the labels are the symbols that follow.
    np.testing.assert_array_equal(labels[:, :5], 0)
    np.testing.assert_array_equal(labels[:, 5:9], ids[:, 6:])
    np.testing.assert_array_equal(labels[:, 9], 0)


def test_full_attention_is_attention_of_shared_queries_and_keys_to_all_before():
    """By loops over positions, from the weights of the layer."""
    keras.utils.set_random_seed(2)
    model = duplication._model("full", 8)
    duplication._rotate(model, "full", np.random.default_rng(1))
    (layer,) = (
        layer
        for layer in model._flatten_layers()
        if type(layer).__name__ == "LSHAttention" and layer.built
    )
    x = np.random.default_rng(3).standard_normal((1, 8, 256)).astype("float32")
    heads = layer._project(x, x, None)
    query, value = (keras.ops.convert_to_numpy(heads[role])[0] for role in ("query", "value"))
    contexts = np.zeros((4, 8, 64))
    for head, position in np.ndindex(4, 8):
        key = query[head] / np.linalg.norm(query[head], axis=-1, keepdims=True)
        earlier = range(position) if position else [0]
        weights = np.exp([query[head, position] @ key[j] for j in earlier])
        contexts[head, position] = (weights / weights.sum()) @ value[head][list(earlier)]
    expected = layer._project_back(keras.ops.convert_to_tensor(contexts[None], "float32"))
    np.testing.assert_allclose(layer(x, x, use_causal_mask=True), expected, atol=1e-4)


def test_mistakes_are_told():
    refused("Received: trained='lsh-3'", list, duplication.measure_duplication(["lsh-3"]))
    refused("Received: length=9", list, duplication.measure_duplication(length=9))
    with pytest.raises(UserError, match="multiple of 100. Received: steps=150"):
        list(duplication.measure_duplication(steps=150))


@pytest.mark.slow
def test_a_watcher_is_told_of_all_steps(monkeypatch):
    monkeypatch.setattr(duplication, "STEPS_AT_ONCE", 2)
    monkeypatch.setattr(duplication, "TEST_BATCHES", 1)
    told = []
    (figures,) = duplication.measure_duplication(
        ["full"], length=8, steps=4, watch=lambda *news: told.append(news)
    )
    assert [news[:2] for news in told] == [("full", 2), ("full", 4)]
    assert round(told[-1][2], 4) == figures["loss"]


@pytest.mark.slow
def test_each_update_has_its_own_sequences_and_rotations(monkeypatch):
    monkeypatch.setattr(duplication, "STEPS_AT_ONCE", 2)
    monkeypatch.setattr(duplication, "TEST_BATCHES", 1)
    seen, update = [], duplication._update

    def watched(model, kind, *arguments):
        loss = update(model, kind, *arguments)
        (rotations,) = (x for x in model.non_trainable_variables if x.path.endswith("rotations"))
        seen.append((keras.ops.convert_to_numpy(rotations), loss))
        return loss

    monkeypatch.setattr(duplication, "_update", watched)
    (figures,) = duplication.measure_duplication(["lsh-2"], length=16, steps=4)
    assert len({rotations.tobytes() for rotations, _ in seen}) == 4
    # The mean of the last two updates, counted anew.
    assert figures["loss"] == round(seen[-1][1], 4)
    assert seen[-1][1] != seen[-2][1]

import keras_tuner
import numpy as np
import pytest

from keras_attn.tuning import PresetHyperModel
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

SMALL = {
    "model.num_layers": {"min": 1, "max": 2},
    "model.hidden_dim": [8, 16],
    "model.intermediate_dim": 11,
    "model.num_heads": 2,
    "positions": {"sinusoidal": {}, "rotary": {"model.rotary_positions": True}},
    "training.warmup_steps": 1,
    "training.batch_tokens": 64,
}


@pytest.mark.slow
def test_by_a_keras_tuner_users_own_script(tmp_path):
    generator = np.random.default_rng(0)
    labels = generator.integers(3, 13, (40, 6)).astype("int32")
    targets = np.concatenate([np.ones((40, 1), "int32"), labels[:, :-1]], axis=1)
    inputs = {"source_ids": labels, "target_ids": targets}
    tuner = keras_tuner.RandomSearch(
        PresetHyperModel("g2p_small", 13, SMALL),
        objective="val_loss",
        max_trials=2,
        seed=3,
        directory=tmp_path,
    )
    tuner.search(inputs, labels, epochs=2, validation_split=0.25, verbose=0)
    assert [trial.status for trial in tuner.oracle.trials.values()] == ["COMPLETED"] * 2
    best = tuner.get_best_hyperparameters()[0]
    model = tuner.hypermodel.build(best)
    assert model.hidden_dim == best["model.hidden_dim"]
    assert len(model.encoder_blocks) == best["model.num_layers"]
    assert float(model.optimizer.learning_rate) == pytest.approx(best["training.learning_rate"])


def test_a_language_model():
    model = PresetHyperModel("lm_tiny", 13, SMALL).build(keras_tuner.HyperParameters())
    ids = np.random.default_rng(0).integers(1, 13, (4, 6)).astype("int32")
    history = model.fit({"token_ids": ids}, np.roll(ids, -1, axis=1), epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.slow
def test_a_classifier_with_a_mechanism_that_knows_its_length():
    space = SMALL | {"attention.name": ["random_synthesizer", "local"], "positions": {"none": {}}}
    hypermodel = PresetHyperModel("listops_tiny", 13, space, num_classes=3, max_length=6)
    model = hypermodel.build(keras_tuner.HyperParameters())
    assert type(model.encoder.blocks[0].attention).__name__ == "RandomSynthesizer"
    ids = np.random.default_rng(0).integers(1, 13, (4, 6)).astype("int32")
    history = model.fit({"token_ids": ids}, ids[:, 0] % 3, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.parametrize(("preset", "num_classes"), [("listops_tiny", None), ("g2p_small", 3)])
def test_classes_are_for_encoders(preset, num_classes):
    with pytest.raises(
        UserError, match="`num_classes` is required for presets of encoders, and only"
    ):
        PresetHyperModel(preset, 13, num_classes=num_classes)


def test_unknown_preset():
    refused("Did you mean 'g2p_small'", PresetHyperModel, "g2p_smal", 13)


@pytest.mark.slow
def test_a_classifier_of_images():
    space = SMALL | {
        "positions": {"none": {}},
        "attention.name": ["linear"],
        "model.pooling": "max",
    }
    model = PresetHyperModel("patch_tiny", space=space, num_classes=3).build(
        keras_tuner.HyperParameters()
    )
    assert model.pooling == "max"
    images = np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype("float32")
    history = model.fit({"images": images}, np.array([0, 1, 2, 1]), epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()

"""Quantized and adapted models decode step by step what they compute at once, and are trained."""

import keras
import numpy as np
import pytest

from keras_attn.layers import enable_lora
from keras_attn.models import T5, Bert, CausalTransformer, SequenceClassifier, Transformer
from tests.harness import assert_saved, numpy
from tests.models.families import INPUTS, TARGET

SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7, "dropout": 0.0}
TOKENS = {"token_ids": TARGET}

pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")


def adapted(model, mode):
    """Quantized, if there is a mode, with adapters that hold numbers."""
    if mode is not None:
        model.quantize(mode)
    for number, projection in enumerate(enable_lora(model, 2)):
        for _, second in projection._adapters():
            value = np.random.default_rng(number).normal(size=second.shape) / 3
            second.assign(value.astype("float32"))
    return model


@pytest.mark.parametrize("mode", [None, "int8"])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("family", [CausalTransformer, Transformer])
def test_steps_equal_the_whole(family, merged, mode, tmp_path):
    inputs, source = (TOKENS, 2) if family is CausalTransformer else (INPUTS, INPUTS["source_ids"])
    model = adapted(family(11, **SIZES), mode)
    if merged:
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
        assert not any("lora" in weight.path for weight in model.weights)
    state, steps = model.initial_state(source, 7), []
    for index in range(3):  # as long as no row has ended
        logits, state = model.step(TARGET[:, index], state, index)
        steps.append(numpy(logits))
    whole = numpy(model(inputs))[:, :3]
    np.testing.assert_allclose(np.stack(steps, 1), whole, rtol=1e-4, atol=1e-5)


# torch compiles no layer that is made within a call.
@pytest.mark.parametrize("compiled", [False, keras.backend.backend() != "torch"])
def test_trained_in_mixed_precision_on_int8(compiled):
    model = adapted(CausalTransformer(11, dtype="mixed_bfloat16", **SIZES), "int8")
    before = {weight.path: numpy(weight) for weight in model.weights}
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=compiled)
    losses = model.fit(TOKENS, np.roll(TARGET, -1, 1), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    changed = {w.path for w in model.weights if np.any(numpy(w) != before[w.path])}
    assert changed == {w.path for w in model.trainable_variables}
    assert all("lora" in path for path in changed)


def fraction_of_integers(model):
    sizes = [(weight.dtype, np.prod(weight.shape)) for weight in model.weights]
    return sum(size for dtype, size in sizes if dtype == "int8") / sum(size for _, size in sizes)


@pytest.mark.parametrize("is_map", [False, True])
@pytest.mark.parametrize("family", [Bert, CausalTransformer, Transformer, T5])
def test_made_by_a_quantized_policy(family, is_map, tmp_path):
    policy = "int8_from_float32"
    if is_map:
        policy = keras.dtype_policies.DTypePolicyMap(default_policy=policy)
    sizes = SIZES | {"hidden_dim": 32, "intermediate_dim": 64}
    model = family(50, dtype=policy, **sizes)
    inputs = TOKENS if family in (Bert, CausalTransformer) else INPUTS
    if family is Bert:
        model = SequenceClassifier(model, 3, dtype=policy)
    assert fraction_of_integers(model) > 0.85
    assert model.dtype_policy.name == "float32"
    assert_saved(model, inputs, tmp_path)


@pytest.mark.parametrize("pooling", ["mean", "max", "first", "pooler"])
def test_a_classifier_of_nothing(pooling):
    encoder = Bert(11, **SIZES)
    logits = SequenceClassifier(encoder, 3, pooling)({"token_ids": np.zeros((2, 0), "int32")})
    assert np.isfinite(numpy(logits)).all()
    assert logits.shape == (2, 3)

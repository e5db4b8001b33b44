"""T5 against `transformers`: versions 1.0 and 1.1, the shared biases, sizes, initial weights."""

import pathlib

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import T5
from tests.harness import arrays_of, assert_saved, numpy
from tests.layers.judges import spread_weights
from tests.refusals import refused_in_one_line

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SIZES = {
    "num_layers": 2,
    "decoder_layers": 3,
    "hidden_dim": 15,
    "num_heads": 5,
    "key_dim": 4,
    "intermediate_dim": 37,
    "num_buckets": 8,
    "max_distance": 11,
    "epsilon": 1e-3,
}
VERSIONS = {"t5": {}, "t5_v1_1": {"activation": "gelu_tanh", "gated": True, "tie_output": False}}
SOURCE = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
TARGET = np.array([[1, 4, 8, 6, 3, 9, 5], [1, 7, 5, 3, 9, 6, 4]], "int32")


def filled(name, golden):
    """The model with the parameters of `transformers`, which scales no embedding and no score."""
    model = T5(23, **(SIZES | VERSIONS[name]))
    root = np.sqrt(SIZES["key_dim"])

    def attention(layer, prefix):
        parts = {role: golden[f"{prefix}.{role[0]}.weight"].T for role in ("query", "key", "value")}
        parts["query"] = parts["query"] * root
        for projection in layer.projections:
            projection.kernel.assign(np.concatenate([parts[role] for role in projection.heads], 1))
        layer.output_projection.kernel.assign(golden[f"{prefix}.o.weight"].T)

    def feed_forward(layer, prefix):
        first = "wi_0" if f"{prefix}.wi_0.weight" in golden else "wi"
        layer.intermediate.kernel.assign(golden[f"{prefix}.{first}.weight"].T)
        if layer.gate is not None:
            layer.gate.kernel.assign(golden[f"{prefix}.wi_1.weight"].T)
        layer.output_projection.kernel.assign(golden[f"{prefix}.wo.weight"].T)

    def norm(layer, name):
        layer.scale.assign(golden[f"{name}.weight"])

    kinds = {"attention": "SelfAttention", "self_attention": "SelfAttention"}
    kinds["cross_attention"] = "EncDecAttention"
    model.source_embedding.embeddings.assign(golden["shared.weight"] / np.sqrt(15))
    if model.output_embedding is not None:
        model.output_embedding.embeddings.assign(golden["lm_head.weight"])
    for side in ("encoder", "decoder"):
        for i, block in enumerate(getattr(model, f"{side}_blocks")):
            found = [name for name in kinds if hasattr(block, name)]
            for place, name in enumerate(found):
                prefix = f"{side}.block.{i}.layer.{place}"
                attention(getattr(block, name), f"{prefix}.{kinds[name]}")
                norm(getattr(block, f"{name}_residual").norm, f"{prefix}.layer_norm")
            prefix = f"{side}.block.{i}.layer.{len(found)}"
            feed_forward(block.feed_forward, f"{prefix}.DenseReluDense")
            norm(block.feed_forward_residual.norm, f"{prefix}.layer_norm")
            if i == 0:
                name = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
                table = getattr(block, found[0]).relative_positions.embeddings
                table.assign(golden[name])
        norm(getattr(model, f"{side}_norm"), f"{side}.final_layer_norm")
    return model


@pytest.mark.parametrize("name", VERSIONS)
def test_numbers_are_those_of_transformers(name):
    golden = arrays_of(GOLDEN / f"{name}.npz")
    model = filled(name, golden)
    source, target = golden["source_ids"], golden["target_ids"]
    encoded = numpy(model.encode(source))
    np.testing.assert_allclose(encoded[source > 0], golden["encoded"][source > 0], atol=1e-4)
    found = numpy(model({"source_ids": source, "target_ids": target}))[target > 0]
    expected = golden["logits"][target > 0]
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], atol=1e-4)
    assert (found[:, 0] == -3e4).all()
    assert np.ptp(expected, axis=0).min() > 0.1
    drawn = sum(golden[key].size for key in golden if key.endswith(".weight"))
    assert model.count_params() == drawn


def test_a_stack_has_one_table_of_biases():
    model = T5(11, **SIZES)
    tables = [weight for weight in model.weights if "relative_positions" in weight.path]
    assert [tuple(table.shape) for table in tables] == [(8, 5), (8, 5)]
    for attentions in (
        [block.attention for block in model.encoder_blocks],
        [block.self_attention for block in model.decoder_blocks],
    ):
        assert len({id(attention.relative_positions) for attention in attentions}) == 1
    assert model.encoder_blocks[0].attention.relative_positions.bidirectional
    assert not model.decoder_blocks[0].self_attention.relative_positions.bidirectional


@pytest.mark.parametrize("name", VERSIONS)
def test_saved_it_is_the_same(name, tmp_path):
    model = spread_weights(T5(11, **(SIZES | VERSIONS[name])))
    again = assert_saved(model, {"source_ids": SOURCE, "target_ids": TARGET}, tmp_path)
    assert len(again.weights) == len(model.weights)
    assert again.get_config() == model.get_config()


def test_any_length_and_no_positions_of_their_own():
    model = T5(11, **SIZES)
    assert model.max_length is None
    assert model.source_positions is None
    local = layers.LocalAttention(5, 4, 3, relative_positions=layers.RelativePositionBias(5))
    mixed = T5(11, **SIZES, encoder_attention=local)
    assert numpy(mixed({"source_ids": SOURCE, "target_ids": TARGET})).shape == (2, 7, 11)


def test_initial_weights_have_the_variance_of_the_authors():
    model = T5(97, num_layers=1, hidden_dim=256, num_heads=4, key_dim=64, intermediate_dim=1024)
    block = model.decoder_blocks[0]
    for weight, size in (
        (model.source_embedding.embeddings, 256),
        (block.cross_attention.projections[0].kernel, 256),
        (block.self_attention.output_projection.kernel, 256),  # 4 heads of 64
        (block.feed_forward.intermediate.kernel, 256),
        (block.feed_forward.output_projection.kernel, 1024),
    ):
        assert numpy(weight).std() == pytest.approx(size**-0.5, rel=0.03), weight.path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_layers": 0}, "`num_layers` must be"),
        ({"dropout": 1.0}, "`dropout` must be"),
        ({"key_dim": 0}, "`key_dim` must be"),
        ({"num_buckets": 7}, "`num_buckets` must be even"),
        ({"intermediate_dim": 0}, "`intermediate_dim` must be"),
    ],
)
def test_mistakes_take_one_line(arguments, message):
    refused_in_one_line(message, T5, 11, **(SIZES | arguments))

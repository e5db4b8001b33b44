"""The encoder-decoder Transformer: sizes, masks, saving, learning, parts of any kind."""

import keras
import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from keras_attn.models import PRESETS, Transformer, get_preset
from keras_attn.models.parameter_count import parameter_count
from tests.backends import thinned
from tests.harness import assert_saved, numpy
from tests.layers.judges import spread_weights
from tests.models.families import INPUTS, SMALL, SOURCE, TARGET, check_padding, losses_of
from tests.refusals import message_of, refused

VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned positions": {"learned_positions": 13},
    "rotary positions": {"rotary_positions": True},
    "two vocabularies": {"target_vocabulary_size": 13},
    "grouped": {"encoder_attention": MultiHeadAttention(3, 4, num_key_value_heads=1)},
}


def tiny(**arguments):
    return Transformer(11, **(SMALL | arguments))


# Table 3 of the paper, in millions of parameters; rows not named there have the base model's.
PAPER = {
    "transformer_base": 65,
    "transformer_big": 213,
    "transformer_b_key_16": 58,
    "transformer_b_key_32": 60,
    "transformer_c_layers_2": 36,
    "transformer_c_layers_4": 50,
    "transformer_c_layers_8": 80,
    "transformer_c_hidden_256": 28,
    "transformer_c_hidden_1024": 168,
    "transformer_c_ff_1024": 53,
    "transformer_c_ff_4096": 90,
}


@pytest.mark.tensorflow  # the numbers are those of any backend
@pytest.mark.parametrize("name", [name for name in PRESETS if "Table 3" in PRESETS[name].paper])
def test_presets_have_as_many_parameters_as_the_paper_says(name):
    millions = parameter_count(lambda: Transformer.from_preset(name, 41_000)) / 1e6
    assert millions == pytest.approx(PAPER.get(name, 65), rel=0.03)


def test_every_row_of_the_table_is_there():
    assert len([name for name in PRESETS if "Table 3" in PRESETS[name].paper]) == 20
    assert set(PAPER) < set(PRESETS)


def test_parameters_counted_by_hand():
    # A source vocabulary of 11 and a target one of 13; an encoder block has an attention, a
    # feed-forward network and two norms of 24, a decoder block one more attention and norm; each
    # stack ends with a norm.
    attention, feed_forward = 4 * (12 * 12 + 12), 12 * 17 + 17 + 17 * 12 + 12
    expected = 24 * 12 + 2 * (3 * attention + 2 * feed_forward + 5 * 24) + 2 * 24
    model = tiny(target_vocabulary_size=13, norm_first=True, dropout=0.0)
    assert model.count_params() == expected


def test_from_preset():
    model = Transformer.from_preset("g2p_small", 11, num_layers=1, target_vocabulary_size=13)
    config = model.get_config()
    assert (config["hidden_dim"], config["num_layers"], config["norm_first"]) == (128, 1, True)
    assert model.output_shape == (None, None, 13)
    message = r"Did you mean 'g2p_small'\? Received: preset='g2p_smal'."
    refused(message, Transformer.from_preset, "g2p_smal", 11)
    message = "`preset` must be one of .* Received: preset='g2p_small'"
    refused(message, get_preset, "g2p_small", family="Bert")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"num_heads": 5},
            "`num_heads` must divide `hidden_dim`. Received: num_heads=5, hidden_dim=12.",
        ),
        ({"num_layers": 0}, "`num_layers` must be a positive integer. Received: num_layers=0."),
        (
            {"intermediate_dim": 0},
            "`intermediate_dim` must be a positive integer. Received: intermediate_dim=0.",
        ),
        ({"dropout": 1.0}, "`dropout` must be a number in [0, 1). Received: dropout=1.0."),
        (
            {"encoder_attention": "local"},
            "`attention` must be an attention layer, called with query, value, attention_mask, "
            "use_causal_mask. Received: attention='local'.",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message):
    assert message_of(tiny, **arguments) == message


def test_an_unknown_argument_is_refused():
    with pytest.raises(TypeError, match="num_head"):
        tiny(num_head=4)


def test_sizes_of_heads_need_not_divide_when_given():
    model = tiny(num_heads=5, key_dim=2, value_dim=3)
    assert tuple(model(INPUTS).shape) == (2, 7, 11)


@pytest.mark.parametrize("name", thinned(VARIANTS, 3, 3))
def test_a_saved_model_is_the_same(name, tmp_path):
    model = spread_weights(tiny(**VARIANTS[name]))
    loaded = assert_saved(model, INPUTS, tmp_path)
    assert isinstance(loaded, Transformer)
    assert loaded.get_config() == model.get_config()
    assert len(loaded.layers) == len(model.layers)
    assert len(loaded.variables) == len(model.variables)


@pytest.mark.parametrize("name", thinned(VARIANTS, on_tensorflow=2))
def test_padding_never_changes_a_real_token(name):
    check_padding(spread_weights(tiny(**VARIANTS[name])), INPUTS, (0, 1, 6))


def test_a_target_never_sees_what_follows():
    model = spread_weights(tiny())
    changed = TARGET.copy()
    changed[0, 4:] = 10
    outputs = [
        numpy(model({"source_ids": SOURCE, "target_ids": ids}))[0] for ids in (TARGET, changed)
    ]
    np.testing.assert_array_equal(outputs[0][:4], outputs[1][:4])
    assert not np.allclose(outputs[0][4:], outputs[1][4:])


def test_one_vocabulary_has_one_table():
    model = tiny()
    assert model.source_embedding is model.target_embedding
    tables = [weight for weight in model.weights if weight.path.endswith("embeddings")]
    assert [tuple(table.shape) for table in tables] == [(11, 12)]
    two = tiny(target_vocabulary_size=13)
    assert two.source_embedding is not two.target_embedding


def test_every_attention_can_be_exchanged():
    model = tiny(
        encoder_attention=MultiHeadAttention(3, 4, num_key_value_heads=1),
        self_attention=MultiHeadAttention(2, 5, sliding_window=3),
        cross_attention=MultiHeadAttention(6, 2, value_dim=7),
    )
    assert tuple(model(INPUTS).shape) == (2, 7, 11)
    encoder, decoder = model.encoder_blocks[1], model.decoder_blocks[1]
    assert encoder.attention.num_key_value_heads == 1
    assert decoder.self_attention.sliding_window == 3
    assert decoder.cross_attention.value_dim == 7
    assert encoder.attention is not model.encoder_blocks[0].attention


@pytest.mark.slow
def test_fit_learns_to_copy():
    """With Keras' own `compile` and `fit`, and its own loss: no other package is needed."""
    model = tiny(num_layers=1, hidden_dim=24, norm_first=True)
    rng = np.random.default_rng(1)
    words = rng.integers(3, 11, (256, 4)).astype("int32")
    end = np.full((256, 1), 2, "int32")
    inputs = {
        "source_ids": np.concatenate([words, end], axis=1),
        "target_ids": np.concatenate([end - 1, words], axis=1),
    }
    labels = np.concatenate([words, end], axis=1)
    history = losses_of(model, inputs, labels, ignore_class=0, batch_size=64, epochs=15)
    assert history[0] > 2  # eight words by chance: the logarithm of 8 is 2.08
    assert history[-1] < 1.3


@pytest.mark.tensorflow
@pytest.mark.slow
def test_fit_learns_with_the_loss_of_this_package():
    from keras_attn.training import TokenCrossEntropy

    model = tiny(num_layers=1, dropout=0.0)
    model.compile(keras.optimizers.Adam(3e-3), TokenCrossEntropy(label_smoothing=0.1))
    labels = np.concatenate([TARGET[:, 1:], [[2], [0]]], axis=1)
    history = model.fit(INPUTS, labels, batch_size=2, epochs=20, verbose=0).history["loss"]
    assert history[-1] < history[0] - 0.5

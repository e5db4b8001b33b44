"""Text encoders without tokenizers, judged by what transformers gave.

Rows of different lengths are in one batch here, and were computed alone there, see
make_encoders_golden.py.
"""

import warnings

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_attn.convert import convert_huggingface, model_from_huggingface
from keras_attn.convert.files.configuration import CONFIG
from keras_attn.convert.huggingface import ENCODERS
from keras_attn.documents import read_json_object
from keras_attn.layers import LocalAttention, LongformerAttention, MultiHeadAttention
from keras_attn.models import Bert, MaskedLanguageModel, SequenceClassifier, TokenClassifier
from tests.convert.made import (
    GOLDEN,
    INDEX,
    WEIGHTS,
    change_tensors,
    config,
    copy_of,
    shard,
    tensors,
    truncate,
    without,
    write_json,
)
from tests.harness import arrays_of
from tests.refusals import refused, refused_in_one_line

pytestmark = pytest.mark.tensorflow

FILE = arrays_of(GOLDEN / "encoders.npz")
ESTIMATED = (
    r"config.json: only texts of 12 tokens \(`segment_means_seq_len`\) have the outputs of tra"
)
# Class of the model, arguments of the conversion and what is said about it.
MODELS = {
    "longformer_masked": (MaskedLanguageModel, {}, None),
    "longformer_local": (MaskedLanguageModel, {"global_length": 0}, None),
    "longformer_encoder": (Bert, {}, None),
    "longformer_of_texts": (SequenceClassifier, {}, None),
    "longformer_of_tokens": (TokenClassifier, {}, None),
    "big_bird_masked": (MaskedLanguageModel, {}, "Not used: the head of next-sentence prediction"),
    "big_bird_encoder": (Bert, {}, None),
    "big_bird_full": (MaskedLanguageModel, {}, None),
    "big_bird_of_texts": (SequenceClassifier, {}, r"Not used: the pooler \(pooler"),
    "nystromformer_masked": (MaskedLanguageModel, {}, ESTIMATED),
    "nystromformer_encoder": (Bert, {}, None),
    "nystromformer_of_texts": (SequenceClassifier, {}, None),
    "bert_masked": (MaskedLanguageModel, {}, "Not used: the head of next-sentence prediction"),
    "bert_encoder": (Bert, {}, None),
    "roberta_masked": (MaskedLanguageModel, {}, None),
    "roberta_encoder": (Bert, {}, None),
    "xlm_roberta_of_texts": (SequenceClassifier, {}, None),
    "camembert_of_tokens": (TokenClassifier, {}, None),
    "distilbert_masked": (MaskedLanguageModel, {}, None),
    "distilbert_of_texts": (SequenceClassifier, {}, None),
    "electra_masked": (MaskedLanguageModel, {}, None),
    "electra_encoder": (Bert, {}, None),
    "electra_of_texts": (SequenceClassifier, {}, None),
    "albert_masked": (MaskedLanguageModel, {}, "Not used: the head of sentence-order prediction"),
    "albert_encoder": (Bert, {}, None),
    "albert_of_texts": (SequenceClassifier, {}, None),
    "mpnet_masked": (MaskedLanguageModel, {}, None),
    "mpnet_encoder": (Bert, {}, None),
    "mpnet_of_texts": (SequenceClassifier, {}, None),
    "deberta_masked": (MaskedLanguageModel, {}, None),
    "deberta_v3_masked": (MaskedLanguageModel, {}, None),
    "deberta_encoder": (Bert, {}, None),
    "deberta_of_texts": (SequenceClassifier, {}, None),
    "modernbert_masked": (MaskedLanguageModel, {}, None),
    "modernbert_encoder": (Bert, {}, None),
    "modernbert_of_texts": (SequenceClassifier, {}, None),
    "modernbert_of_tokens": (TokenClassifier, {}, None),
}
FAMILIES = {"longformer_of_texts": 1, "big_bird_full": 0, "nystromformer_encoder": 1}
"""A checkpoint of each family that gives no warning, and its id of padding."""


def made(name, folder=None):
    kind, options, said = MODELS[name]
    folder = folder or GOLDEN / name
    if said is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = model_from_huggingface(folder, **options)
    else:
        with pytest.warns(UserWarning, match=said):
            model = model_from_huggingface(folder, **options)
    assert type(model) is kind
    return model


def golden(name):
    return {key.split("/")[1]: array for key, array in FILE.items() if key.startswith(f"{name}/")}


def padding_of(name):
    sizes = read_json_object(GOLDEN / name / CONFIG)
    return sizes["pad_token_id"]


def inputs_of(name, arrays):
    ids = arrays["token_ids"]
    ours = np.where(ids < 0, 0, ids + (ids < padding_of(name)))
    return {"token_ids": ours.astype("int32")}


def outputs_of(model, inputs, segments):
    """Vectors of the encoder, and what its head or its pooler makes of them."""
    encoder = getattr(model, "encoder", model)
    hidden = encoder(inputs | {"segment_ids": segments.astype("int32")})
    if encoder is not model:
        return np.asarray(hidden), np.asarray(model(inputs))
    pooled = None if encoder.pooler is None else np.asarray(encoder.pooled(hidden))
    return np.asarray(hidden), pooled


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_transformers(name):
    arrays = golden(name)
    real = arrays["token_ids"] >= 0
    assert real.any(1).all()
    hidden, outputs = outputs_of(made(name), inputs_of(name, arrays), arrays["segment_ids"])
    assert np.abs(arrays["hidden"][real]).max() > 1
    np.testing.assert_allclose(hidden[real], arrays["hidden"][real], atol=1e-4)
    if "outputs" not in arrays:
        assert outputs is None
        return
    expected = arrays["outputs"]
    if outputs.shape[-1] == 29:  # logits of the tokens, with padding as the first of ours
        order = [padding_of(name), *(n for n in range(29) if n != padding_of(name))]
        expected = expected[..., order]
    if expected.ndim == 3:
        outputs, expected = outputs[real], expected[real]
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["longformer_local", "big_bird_masked", "nystromformer_encoder"])
def test_each_row_alone(name):
    """Lengths are known when the model is called, and there is no padding."""
    arrays = golden(name)
    model = made(name)
    token_ids = inputs_of(name, arrays)["token_ids"]
    for ids, segments, expected in zip(
        token_ids, arrays["segment_ids"], arrays["hidden"], strict=True
    ):
        length = (ids != 0).sum()
        inputs = {"token_ids": ids[None, :length]}
        found, _ = outputs_of(model, inputs, segments[None, :length])
        np.testing.assert_allclose(found[0], expected[:length], atol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_saved_model_is_the_same(name, tmp_path):
    model, inputs = made(name), inputs_of(name, golden(name))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(again(inputs)), np.asarray(model(inputs)))


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_in_several_files_of_half_precision(name, tmp_path):
    folder = copy_of(GOLDEN / name, tmp_path / "checkpoint")
    halves = {key: t.astype("float16") for key, t in load_file(folder / WEIGHTS).items()}
    change_tensors(folder, lambda _: halves)
    one = made(name, folder)
    shard(folder)
    assert (folder / INDEX).is_file()
    for found, expected in zip(made(name, folder).weights, one.weights, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_the_attention_of_each_block():
    first, second = (block.attention for block in made("longformer_encoder").blocks)
    assert type(first) is LongformerAttention
    assert (first.sliding_window, second.sliding_window, first.global_length) == (5, 3, 1)
    assert first.dropout == 0.1
    model = model_from_huggingface(GOLDEN / "longformer_encoder", global_length=3)
    assert model.blocks[1].attention.global_length == 3
    local = made("longformer_local").encoder.blocks[0].attention
    assert (type(local), local.sliding_window) == (LocalAttention, 5)
    model = made("big_bird_masked").encoder
    attention = model.blocks[0].attention
    assert (attention.block_length, attention.num_random_blocks) == (2, 1)
    assert (attention.repeat_first, attention.full_length) == (True, 14)
    assert model.max_length == 41
    assert type(made("big_bird_full").encoder.blocks[0].attention) is MultiHeadAttention
    attention = made("nystromformer_encoder").blocks[0].attention
    assert (attention.num_landmarks, attention.convolution_width) == (None, 5)
    assert made("nystromformer_masked").encoder.blocks[0].attention.num_landmarks == 4


def test_a_window_for_all_blocks_and_none_given(tmp_path):
    folder = copy_of(GOLDEN / "longformer_encoder", tmp_path / "checkpoint")
    for window, expected in ((6, 4), (..., 257)):
        config(attention_window=window)(folder)
        blocks = model_from_huggingface(folder).blocks
        assert [block.attention.sliding_window for block in blocks] == [expected] * 2


def test_padding_of_the_tokenizer_or_as_given(tmp_path):
    """The configuration may have another id of padding than the tokenizer."""
    name = "nystromformer_encoder"
    folder = copy_of(GOLDEN / name, tmp_path / "checkpoint")
    table = load_file(folder / WEIGHTS)["embeddings.word_embeddings.weight"]

    def first(**options):
        model = model_from_huggingface(folder, **options)
        return model.embedding.embeddings.numpy()[:2].tolist()

    assert first() == table[[1, 0]].tolist()
    assert first(padding_id=7) == table[[7, 0]].tolist()
    added = [{"id": 3, "content": "<pad>"}, {"id": 4, "content": "[MASK]"}]
    write_json(folder / "tokenizer.json", {"added_tokens": added})
    assert first() == table[[3, 0]].tolist()
    decoder = {"5": {"content": "[PAD]"}}
    write_json(
        folder / "tokenizer_config.json", {"pad_token": "[PAD]", "added_tokens_decoder": decoder}
    )
    assert first() == table[[5, 0]].tolist()
    assert first(padding_id=2) == table[[2, 0]].tolist()


def test_a_nystromformer_without_a_convolution(tmp_path):
    folder = copy_of(GOLDEN / "nystromformer_encoder", tmp_path / "checkpoint")
    without(".conv.weight")(folder)
    config(conv_kernel_size=None)(folder)
    assert model_from_huggingface(folder).blocks[0].attention.convolution is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("longformer_masked", r"masked language modeling \(lm_head"),
        ("big_bird_full", r"masked language modeling \(cls.predictions"),
        ("longformer_of_tokens", r"the classifier \(classifier"),
    ],
)
def test_another_architecture_leaves_the_head_out(name, said, tmp_path):
    folder = copy_of(GOLDEN / name, tmp_path / "checkpoint")
    config(architectures=["AnotherForQuestionAnswering"])(folder)
    with pytest.warns(UserWarning, match=f"Not used: .*{said}"):
        assert type(model_from_huggingface(folder)) is Bert


@pytest.mark.parametrize("name", ["big_bird_full", "nystromformer_encoder"])
def test_folders_without_a_tokenizer(name):
    refused_in_one_line("no tokenizer file", convert_huggingface, GOLDEN / name)


LONGFORMER, BIG_BIRD, NYSTROM = "longformer_encoder", "big_bird_masked", "nystromformer_encoder"
TIED = "bert.embeddings.word_embeddings.weight"
MISTAKES = {
    **{
        f"{what}, {name}": (name, spoil, message)
        for name in (LONGFORMER, BIG_BIRD, NYSTROM)
        for what, spoil, message in (
            ("unknown key", config(colour=3), "config.json: `colour` is not supported. Rec.*: col"),
            ("decoder", config(is_decoder=True), "`is_decoder` must be False"),
            ("positions", config(position_embedding_type="relative_key"), "`position_embedding_t"),
            ("activation", config(hidden_act="prelu"), "`hidden_act` must be one of"),
            ("heads", config(num_attention_heads=5), "`num_attention_heads` must divide `hidden_"),
            ("no heads", config(num_attention_heads=0), "config.json: `num_attention_heads` must"),
            (
                "tensor",
                tensors(lambda found: found | {"some.where": np.ones(2, "float32")}),
                "the tensors do not fit the model; left over: some.where",
            ),
            ("cut", lambda folder: truncate(folder / WEIGHTS), "model.safetensors is damaged or"),
            ("vocabulary", config(vocab_size=10**14), "`vocab_size` must be the number of rows"),
            ("padding", config(pad_token_id=29), "the id of padding must be one of the 29 tokens"),
            (
                "type",
                config(model_type="led"),
                "this `model_type` is not supported; supported are a",
            ),
        )
    },
    "odd window": (LONGFORMER, config(attention_window=[8, 3]), "`attention_window` must be an ev"),
    "windows": (LONGFORMER, config(attention_window=[8]), "with one for each layer. Received: att"),
    "no padding": (LONGFORMER, config(pad_token_id=None), "`pad_token_id` must be an integer"),
    "few positions": (LONGFORMER, config(max_position_embeddings=2), "`max_position_embeddings`"),
    "globals": (
        "longformer_of_texts",
        without("query_global"),
        "missing: .*attention.self.query_global.bias",
    ),
    "attention": (BIG_BIRD, config(attention_type="sparse"), "`attention_type` must be one of 'bl"),
    "blocks": (BIG_BIRD, config(block_size=0), "config.json: `block_size` must be a positive int"),
    "random": (BIG_BIRD, config(num_random_blocks=-1), "`num_random_blocks` must be an integer"),
    "biases": (BIG_BIRD, config(use_bias=False), "left over: bert.encoder.layer.0.attention.self"),
    "not tied": (BIG_BIRD, config(tie_word_embeddings=False), "`tie_word_embeddings` must be True"),
    "another output": (
        BIG_BIRD,
        tensors(lambda found: found | {"cls.predictions.decoder.weight": found[TIED] + 1}),
        "cls.predictions.decoder.weight must be the same as bert.embeddings",
    ),
    "inverse": (NYSTROM, config(inv_coeff_init_option=True), "`inv_coeff_init_option` must be Fa"),
    "even": (NYSTROM, config(conv_kernel_size=4), "config.json: `conv_kernel_size` must be odd"),
    "landmarks": (NYSTROM, config(num_landmarks=3), "`num_landmarks` must divide `segment_means_"),
    "no switch": ("modernbert_masked", config(mlp_bias=0), "`mlp_bias` must be true or false. Rec"),
    "no number": (
        "modernbert_masked",
        config(hidden_size=True),
        "`hidden_size` must be an integer",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_take_one_line(name, tmp_path):
    golden_name, spoil, message = MISTAKES[name]
    folder = copy_of(GOLDEN / golden_name, tmp_path / "checkpoint")
    spoil(folder)
    assert "checkpoint" in refused_in_one_line(message, model_from_huggingface, folder)


def test_options_of_other_families():
    folder = GOLDEN / "big_bird_full"
    expected = r"BigBird has no such options. Received: options=\['global_length'\]"
    refused(expected, model_from_huggingface, folder, global_length=1)
    folder = GOLDEN / "longformer_encoder"
    refused("`global_length` must be an int", model_from_huggingface, folder, global_length=-1)
    refused("`pad_token_id`, after which", model_from_huggingface, folder, padding_id=3)


def test_every_encoder_is_tested():
    types = {read_json_object(GOLDEN / name / CONFIG)["model_type"] for name in MODELS}
    assert types == set(ENCODERS)

"""Tasks as folders of Hugging Face: the checkpoints that transformers wrote come out again."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors import safe_open
from safetensors.numpy import load_file

from keras_attn.convert import (
    convert_huggingface,
    from_huggingface,
    model_from_huggingface,
    model_to_huggingface,
    write_huggingface,
)
from keras_attn.convert.files import outgoing
from keras_attn.layers import LinearAttention
from keras_attn.models import (
    GPT2,
    T5,
    Bert,
    MaskedLanguageModel,
    SequenceClassifier,
    TransformerEncoder,
)
from keras_attn.tasks import (
    CausalLMTask,
    ClassificationTask,
    DecodingSettings,
    EmbeddingTask,
    MaskedLMTask,
    RegressionTask,
    Seq2SeqTask,
    Task,
)
from keras_attn.tokenizers import PipelineTokenizer, train_tokenizer
from keras_attn.tokenizers.byte_words import byte_characters
from keras_attn.validation import UserError
from tests.backends import thinned
from tests.convert.encoders.test_encoders import MODELS as ENCODER_MODELS
from tests.convert.made import BERT, GOLDEN, INDEX, WEIGHTS, copy_of
from tests.layers.judges import spread_weights
from tests.refusals import refused_in_one_line

pytestmark = pytest.mark.tensorflow

TASKS = (
    *("bert", "bert_of_texts", "bert_of_tokens", "bert_reranker", "masked_bert", "longformer"),
    *("bert_of_questions", "longformer_classifier", "gpt2", "t5", "t5_v1_1", "marian"),
    "marian_separate",
)
# One is read with an option, and one is written with the names of the older version.
OTHERS = {"longformer_local", "deberta_v3_masked"}
MODELS = sorted(set(ENCODER_MODELS) - OTHERS)
# Of random checkpoints: heads that are not used, rows that no token has, positions of padding.
UNUSED = ("cls.seq_relationship", "bert.pooler", "sop_classifier")
SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
LINES = ["the cat sat on the mat", "a dog ran to the cats", "dogs and cats"] * 9
NASTY = [
    *("The cats sat on the mat.", "", " ", "ÜBER [MASK] a cat </s>", "nai\u0308ve café résumé"),
    *("東京は日本の首都", "“Don't” … (twice)", "🤖 & 👩‍👩‍👧", "x" * 120, "İstanbul ﬁ ½ Straße"),
    *("a\tb\nc\r\nd\u00a0e\u3000f", "\u200bzero\u200d \ufeff \x1f", "E=mc^2, 1,000", "##s ## <x>"),
]


def tensors_of(folder):
    return load_file(folder / WEIGHTS)


def json_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def assert_same_tensors(found, expected):
    missing = [name for name in set(expected) - set(found) if not name.startswith(UNUSED)]
    assert not missing
    assert all(name.endswith("bias") for name in set(found) - set(expected))  # BigBird's zeros
    for name in set(found) & set(expected):
        ours, theirs = found[name], expected[name]
        if "position_embeddings" in name:
            used = np.abs(ours).sum(-1) > 0
            assert used.sum() >= len(used) - 2
            ours, theirs = ours[used], theirs[used]
        never = ours < -1e4  # a logit of what is never generated
        assert name == "final_logits_bias" or not never.any()
        np.testing.assert_allclose(ours[~never], theirs[~never], atol=1e-6)


def assert_same_configuration(folder, golden):
    """Numbers that shape the model, its kind and its ids."""
    found, expected = json_of(folder / "config.json"), json_of(golden / "config.json")
    free = {
        *("activation_function", "architectures", "classifier_dropout", "dtype", "label2id"),
        *("problem_type", "tie_word_embeddings", "use_bias", "id2label"),
        *("num_landmarks", "segment_means_seq_len", "cls_dropout"),
    }
    for name in set(found) & set(expected) - free:
        assert found[name] == expected[name], name
    assert set(found) - set(expected) <= free | {"sentence_transformers"}


@pytest.mark.parametrize("name", thinned(TASKS))
def test_a_converted_task_becomes_the_checkpoint_that_it_was(name, tmp_path):
    task = from_huggingface(GOLDEN / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        task.save_huggingface(tmp_path / "out")
    assert_same_tensors(tensors_of(tmp_path / "out"), tensors_of(GOLDEN / name))
    assert_same_configuration(tmp_path / "out", GOLDEN / name)
    again = convert_huggingface(tmp_path / "out").task
    assert type(again) is type(task)
    assert again._settings() == task._settings()
    for role, tokenizer in task.tokenizers.items():
        assert again.tokenizers[role].digest == tokenizer.digest
    for ours, before in zip(again.backbone.weights, task.backbone.weights, strict=True):
        np.testing.assert_allclose(ours, before, atol=1e-6)
    with safe_open(tmp_path / "out" / WEIGHTS, "np") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("name", ["distilbert", "xlm-roberta", "roberta"])
def test_the_tokenizer_chooses_among_equal_architectures(name, tmp_path):
    """DistilBERT is a DeBERTa without relative positions, and XLM-R is RoBERTa."""
    special = ["<pad>", "<s>", "</s>", "<unk>"]
    tokens = [*special, *byte_characters()]
    by_token = {token: number for number, token in enumerate(tokens)}
    parts = {
        "distilbert": ("WhitespaceSplit", {"type": "WordPiece", "vocab": by_token}),
        "roberta": ("ByteLevel", {"type": "BPE", "vocab": by_token, "merges": []}),
        "xlm-roberta": (
            "Metaspace",
            {"type": "Unigram", "unk_id": 3, "vocab": [[token, -1.0] for token in tokens]},
        ),
    }
    words, model = parts[name]
    if name == "distilbert":
        model["unk_token"] = "<unk>"
    definition = {"pre_tokenizer": {"type": words}, "model": model}
    tokenizer = PipelineTokenizer(definition, special)
    golden = "distilbert_masked" if name == "distilbert" else "roberta_encoder"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model_from_huggingface(GOLDEN / golden)
        sizes = getattr(model, "encoder", model).get_config()
        encoder = Bert.from_config(sizes | {"vocabulary_size": tokenizer.vocabulary_size})
        EmbeddingTask(encoder, tokenizer, max_length=8).save_huggingface(tmp_path / "out")
    assert json_of(tmp_path / "out" / "config.json")["model_type"] == name


@pytest.mark.parametrize("name", thinned(MODELS, on_tensorflow=3))
def test_a_converted_model_becomes_the_checkpoint_that_it_was(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model_from_huggingface(GOLDEN / name)
        config = json_of(GOLDEN / name / "config.json")
        kind = {"padding_id": config["pad_token_id"], "model_type": config["model_type"]}
        model_to_huggingface(model, tmp_path / "out", **kind)
        again = model_from_huggingface(tmp_path / "out")
    assert_same_tensors(tensors_of(tmp_path / "out"), tensors_of(GOLDEN / name))
    assert_same_configuration(tmp_path / "out", GOLDEN / name)
    ids = np.array([[5, 7, 3, 9, 2, 8, 0, 0]])
    np.testing.assert_allclose(again({"token_ids": ids}), model({"token_ids": ids}), atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "gpt2", "longformer", "t5"])
def test_the_tokenizers_library_reads_the_same_ids(name, tmp_path):
    library = pytest.importorskip("tokenizers")
    task = from_huggingface(GOLDEN / name)
    write_huggingface(task, tmp_path / "out")
    assert_same_ids(library, task, tmp_path / "out", nasty(name))


def nasty(name):
    # T5's tiny model keeps spaces of other kinds, at which that library splits.
    return [text for text in NASTY if name != "t5" or "\t" not in text]


def assert_same_ids(library, task, folder, texts):
    theirs = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
    (tokenizer, *_) = task.tokenizers.values()
    padding = json_of(folder / "config.json").get("pad_token_id")
    shift = 1 if task.kind in ("causal_lm", "seq2seq") else 0
    for text, row in zip(texts, tokenizer.tokenize(tf.constant(texts)).to_list(), strict=True):
        ids = np.array(row, int)
        expected = ids - 1 if shift else ids - (ids <= padding) * (padding > 0)
        found = theirs.encode(text, add_special_tokens=False).ids
        assert found == expected.tolist(), text


def trained(kind, **options):
    return train_tokenizer(kind, LINES, **options)


def masked(encoder, tokenizer, **options):
    return MaskedLMTask(MaskedLanguageModel(encoder, **options), tokenizer, 16)


def made_here(name):
    """A task as `train` makes it of a preset's sizes, with a tokenizer trained here."""
    words = trained("word_piece", lowercase=True, vocabulary_size=60)
    bert = Bert(words.vocabulary_size, **SIZES, max_length=16, pooler=name == "classification")
    if name == "masked_lm":
        return masked(bert, words)
    if name == "embedding":
        return EmbeddingTask(bert, words, "max", normalize=True, max_length=16)
    if name == "classification":
        model = SequenceClassifier(bert, 2, "pooler")
        return ClassificationTask(model, words, ["no", "yes"], 16, with_start=True)
    if name == "causal_lm":
        tokenizer = trained("byte_level_bpe", vocabulary_size=290)
        model = GPT2(tokenizer.vocabulary_size, **SIZES, max_length=24)
        return CausalLMTask(model, tokenizer, DecodingSettings(max_source_length=8, max_length=8))
    tokenizer = trained(
        "sentencepiece",
        vocabulary_size=60,
        model_type="unigram",
        sentinels=3 * (name == "sentinels"),
    )
    model = T5(tokenizer.vocabulary_size, **SIZES)
    return Seq2SeqTask(model, tokenizer, tokenizer, DecodingSettings(beams=1))


@pytest.mark.parametrize(
    "name", ["masked_lm", "embedding", "classification", "causal_lm", "seq2seq", "sentinels"]
)
def test_what_was_trained_here_goes_out_and_comes_back(name, tmp_path):
    library = pytest.importorskip("tokenizers")
    task = made_here(name)
    spread_weights(task.backbone)
    write_huggingface(task, tmp_path / "out")
    again = convert_huggingface(tmp_path / "out").task
    assert type(again) is type(task)
    for ours, before in zip(again.backbone.weights, task.backbone.weights, strict=True):
        no_padding = slice(int(name in ("causal_lm", "seq2seq", "sentinels")), None)
        rows = no_padding if ours.path.endswith("embedding/embeddings") else slice(None)
        np.testing.assert_allclose(ours[rows], before[rows], atol=1e-6)
    special = ("</s>", "[MASK]")  # recognized in texts by one of the libraries alone
    texts = [text for text in NASTY if not any(token in text for token in special)]
    assert_same_ids(library, task, tmp_path / "out", texts)
    kind = json_of(tmp_path / "out" / "tokenizer_config.json")["tokenizer_class"]
    assert (tmp_path / "out" / "special_tokens_map.json").exists()
    assert kind in ("BertTokenizer", "GPT2Tokenizer", "T5Tokenizer")


def test_settings_of_a_search_without_a_counterpart_are_notes(tmp_path):
    task = made_here("causal_lm")
    task = task.with_decoding(beams=3, banned_words=("dog",), no_repeat_ngram=2, temperature=0.5)
    notes = write_huggingface(task, tmp_path / "out")
    assert [note.partition("counterpart of ")[2] for note in notes] == [
        "banned_words=('dog',).",
        "length_penalty_form='gnmt'.",
    ]
    found = json_of(tmp_path / "out" / "generation_config.json")
    assert (found["num_beams"], found["no_repeat_ngram_size"], found["temperature"]) == (3, 2, 0.5)
    assert (found["early_stopping"], found["max_new_tokens"]) == ("never", 8)


def test_vectors_have_the_modules_of_sentence_transformers(tmp_path):
    task = from_huggingface(BERT)
    for pooling, normalize in (("first", True), ("mean", False)):
        again = EmbeddingTask(task.backbone, task.tokenizer, pooling, normalize, 11)
        folder = tmp_path / pooling
        write_huggingface(again, folder)
        modules = json_of(folder / "modules.json")
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        assert kinds == ["Transformer", "Pooling", "Normalize"][: 2 + normalize]
        assert [module["path"] for module in modules][:2] == ["", "1_Pooling"]
        assert (folder / "2_Normalize").is_dir() == normalize
        config = json_of(folder / "1_Pooling" / "config.json")
        chosen = {"first": "cls_token", "mean": "mean_tokens"}[pooling]
        assert config["word_embedding_dimension"] == 21
        assert [key for key, value in config.items() if value is True] == [f"pooling_mode_{chosen}"]
        assert json_of(folder / "sentence_bert_config.json")["max_seq_length"] == 11
        read = from_huggingface(folder)
        assert (read.pooling, read.normalize, read.max_length) == (pooling, normalize, 11)


def test_numbers_leave_in_their_own_units(tmp_path):
    """The last layer of transformers computes what `predict` returns."""
    bert = from_huggingface(BERT)
    model = spread_weights(SequenceClassifier(bert.backbone, 2, "pooler"))
    options = {"means": [40.0, -3.0], "deviations": [8.0, 0.5], "max_length": 17}
    task = RegressionTask(model, bert.tokenizer, ["price", "age"], **options, with_start=True)
    write_huggingface(task, tmp_path / "out")
    config = json_of(tmp_path / "out" / "config.json")
    assert (config["problem_type"], config["id2label"]) == (
        "regression",
        {"0": "price", "1": "age"},
    )
    found, layer = tensors_of(tmp_path / "out"), model.get_layer("output")
    by_hand = np.array(layer.kernel).T * [[8.0], [0.5]]
    np.testing.assert_allclose(found["classifier.weight"], by_hand, rtol=1e-6)
    texts = ["the cat", "a dog sat"]
    np.testing.assert_allclose(
        from_huggingface(tmp_path / "out").predict(texts), task.predict(texts), rtol=1e-5
    )


def test_large_models_have_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(outgoing, "SHARD_BYTES", 9_000)
    task = from_huggingface(BERT)
    write_huggingface(task, tmp_path / "out")
    index = json_of(tmp_path / "out" / INDEX)
    files = sorted(set(index["weight_map"].values()))
    assert len(files) > 2
    assert files[0] == f"model-00001-of-{len(files):05}.safetensors"
    read = {}
    for file in files:
        tensors = load_file(tmp_path / "out" / file)
        assert sum(tensor.nbytes for tensor in tensors.values()) <= 9_000
        assert {index["weight_map"][name] for name in tensors} == {file}
        read |= tensors
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in read.values())
    assert_same_tensors(read, tensors_of(BERT))
    assert from_huggingface(tmp_path / "out").predict(["a cat"]).shape == (1, 21)


def test_only_a_checkpoint_is_replaced(tmp_path):
    task = from_huggingface(BERT)
    folder = copy_of(BERT, tmp_path / "out")
    write_huggingface(task, folder)
    assert (folder / "modules.json").exists()
    (folder / "thesis.tex").write_text("x")
    refused_in_one_line(
        "must be new, empty or contain only a chec", write_huggingface, task, folder
    )
    assert (folder / "thesis.tex").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outgoing, "save_file", full)
    message = "cannot be saved in .*: No space left on device"
    refused_in_one_line(message, write_huggingface, from_huggingface(BERT), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def word_piece():
    return trained("word_piece", vocabulary_size=60)


def bert_task(pooling="mean", tokenizer=None, **options):
    tokenizer = tokenizer or word_piece()
    model = Bert(tokenizer.vocabulary_size, **SIZES | options, max_length=16)
    return EmbeddingTask(model, tokenizer, pooling, max_length=16)


def classifier(pooling="pooler", **options):
    tokenizer = word_piece()
    model = SequenceClassifier(Bert(60, **SIZES, max_length=16), 2, pooling)
    return ClassificationTask(model, tokenizer, ["no", "yes"], 16, **options)


def with_lora():
    task = bert_task()
    task.backbone.blocks[0].feed_forward.intermediate.enable_lora(2)
    return task


def quantized():
    task = bert_task()
    task.backbone.quantize("int8")
    return task


def gpt2_task(**options):
    tokenizer = trained("byte_level_bpe", vocabulary_size=290, **options)
    model = GPT2(tokenizer.vocabulary_size, **SIZES, max_length=24)
    return CausalLMTask(model, tokenizer, DecodingSettings(max_source_length=8, max_length=8))


def t5_of(model_type="unigram", **options):
    tokenizer = trained("sentencepiece", vocabulary_size=60, model_type=model_type)
    model = T5(tokenizer.vocabulary_size, **SIZES, **options)
    return Seq2SeqTask(model, tokenizer, tokenizer, DecodingSettings(beams=1))


def other_encoder():
    tokenizer = word_piece()
    return EmbeddingTask(TransformerEncoder(60, **SIZES), tokenizer, max_length=16)


REFUSED = {
    "mechanism": (
        lambda: bert_task(attention=LinearAttention(2, 4)),
        "No encoder of transformers .*Bert, BigBird.*attention=LinearAttention",
    ),
    "activation": (lambda: bert_task(activation="elu"), "no such `activation`.*'elu'"),
    "gated": (lambda: bert_task(gated=True), "BertModel .*has no counterpart of gated=True"),
    "tokenizer": (
        lambda: bert_task(tokenizer=trained("characters")),
        "BertModel .*tokenizer='CharacterTokenizer'",
    ),
    "split special tokens": (
        lambda: bert_task(tokenizer=trained("word_piece", split_special_tokens=True)),
        "counterpart of split_special_tokens=True",
    ),
    "classifier": (
        lambda: classifier("mean", with_start=True),
        "ForSequenceClassification .*pooling='mean'",
    ),
    "no start": (lambda: classifier(with_start=False), "counterpart of with_start=False"),
    "head": (
        lambda: masked(bert_task().backbone, word_piece(), activation="relu"),
        "BertForMaskedLM of transformers has no counterpart of activation='relu'",
    ),
    "LoRA": (with_lora, "none of LoRA.*lora"),
    "quantized": (quantized, "none that are quantized"),
    "lowercase": (lambda: gpt2_task(lowercase=True), "GPT2LMHeadModel .*lowercase=True"),
    "BPE": (lambda: t5_of("bpe"), "T5ForConditionalGeneration .*model_type='bpe'"),
    "T5's mechanism": (
        lambda: t5_of(encoder_attention=LinearAttention(2, 4)),
        "counterpart of encoder_attention='LinearAttention'",
    ),
    "another model": (other_encoder, "supported are Bert, GPT2.*model=TransformerEncoder"),
}


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize")
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_counterpart_is_named(name, tmp_path):
    make, message = REFUSED[name]
    text = refused_in_one_line(message, write_huggingface, make(), tmp_path / "out")
    assert len(text) < 300
    assert not list(tmp_path.iterdir())


def test_any_model_of_a_family_is_refused_or_read_as_it_was(tmp_path):
    """Numbers that no default has: a configuration that loses one would be read otherwise."""
    rng = np.random.default_rng(0)
    for number in range(6):
        sizes = {
            "num_layers": 2,
            "hidden_dim": 12,
            "num_heads": int(rng.choice([2, 3])),
            "intermediate_dim": 7,
            "dropout": 0.25,
            "attention_dropout": float(rng.choice([0.0, 0.35])),
            "activation": str(rng.choice(["gelu", "gelu_tanh", "relu", "silu", "tanh"])),
            "epsilon": 1e-4,
            "num_segments": 3,
            "max_length": 19,
        }
        model = spread_weights(Bert(23, **sizes))
        model_to_huggingface(model, tmp_path / str(number))
        config = json_of(tmp_path / str(number) / "config.json")
        assert (config["hidden_dropout_prob"], config["layer_norm_eps"]) == (0.25, 1e-4)
        found = outgoing_sizes(tmp_path / str(number))
        assert found == (23, 3, 19)


def outgoing_sizes(folder):
    tensors = tensors_of(folder)
    names = ("word", "token_type", "position")
    return tuple(len(tensors[f"embeddings.{name}_embeddings.weight"]) for name in names)


def test_a_frozen_model_goes_out_whole(tmp_path):
    task = from_huggingface(BERT)
    task.backbone.trainable = False
    write_huggingface(task, tmp_path / "out")
    assert_same_tensors(tensors_of(tmp_path / "out"), tensors_of(BERT))


def test_a_task_folder_of_another_precision_goes_out_in_float32(tmp_path):
    from_huggingface(BERT).save(tmp_path / "task")
    task = Task.load(tmp_path / "task", dtype="mixed_bfloat16")
    write_huggingface(task, tmp_path / "out")
    assert_same_tensors(tensors_of(tmp_path / "out"), tensors_of(BERT))


def test_models_of_keras_are_no_encoders(tmp_path):
    model = keras.Sequential([keras.layers.Dense(3)])
    with pytest.raises(UserError, match=r"made of `Bert`.*model='Sequential'"):
        model_to_huggingface(model, tmp_path / "out")

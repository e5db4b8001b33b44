"""BERT checkpoints: the numbers of `transformers`, and what does not fit told in one line."""

import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_attn.convert import convert_huggingface, from_huggingface
from keras_attn.tasks import EmbeddingTask
from tests.convert.made import (
    BERT,
    INDEX,
    TEXTS,
    WEIGHTS,
    as_sentence_transformer,
    change_json,
    change_tensors,
    config,
    copy_of,
    fast,
    loaded,
    lose_shard,
    mistakes,
    removed,
    shard,
    tensors,
    tokenizer_config,
    truncate,
    without,
    write_json,
)
from tests.harness import assert_close, assert_same
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

CHECKPOINT = BERT


def outputs(task, golden):
    vectors = task.backbone({name: golden[name] for name in ("token_ids", "segment_ids")})
    return np.asarray(vectors), np.asarray(task.backbone.pooled(vectors))


def test_hidden_states_are_those_of_transformers(task, golden):
    vectors, pooled = outputs(task, golden)
    real = golden["token_ids"] != 0
    assert vectors.shape == golden["hidden"].shape
    assert real.sum(1).tolist() == [13, 7, 1, 10]
    assert_close(vectors[real], golden["hidden"][real], atol=1e-4)
    assert_close(pooled, golden["pooled"], atol=1e-4)
    assert np.ptp(golden["hidden"][real], axis=0).min() > 0.1


def test_ids_and_vectors_of_texts_are_those_of_transformers(task, golden):
    assert_same(task.input_ids(tf.constant(TEXTS)), golden["text_ids"])
    assert_close(task.predict(TEXTS), golden["normalized"], atol=1e-5)
    for pooling, normalize, name in (("mean", False, "mean"), ("first", False, "first")):
        other = EmbeddingTask(task.backbone, task.tokenizer, pooling, normalize, task.max_length)
        assert_close(other.predict(TEXTS), golden[name], atol=1e-4)


def test_settings_without_files_of_sentence_transformers(task):
    settings = (task.pooling, task.normalize, task.max_length, task.truncate)
    assert settings == ("mean", True, 17, True)
    config = task.backbone.get_config()
    assert (config["epsilon"], config["num_segments"], config["activation"]) == (1e-3, 5, "gelu")
    assert (config["dropout"], config["attention_dropout"]) == (0.1, 0.1)


def test_a_saved_task_is_the_same(task, tmp_path):
    assert_same(loaded(task, tmp_path).predict(TEXTS), task.predict(TEXTS))


def with_prefix(tensors):
    tensors = {f"bert.{name}": tensor for name, tensor in tensors.items()}
    return tensors | {"bert.embeddings.position_ids": np.arange(17)[None]}


def with_old_names(tensors):
    names = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
    for new, old in names.items():
        tensors = {name.replace(new, old): tensor for name, tensor in tensors.items()}
    assert sum("gamma" in name for name in tensors) == 5
    return tensors


SAME = {
    "prefix": tensors(with_prefix),
    "old names": tensors(with_old_names),
    "shards": shard,
    "tokenizer.json alone": removed("vocab.txt"),
    "vocab.txt alone": removed("tokenizer.json"),
    "float64": tensors(lambda tensors: {name: t.astype("float64") for name, t in tensors.items()}),
}


@pytest.mark.parametrize("name", SAME)
def test_other_layouts_of_the_same(name, folder, golden):
    SAME[name](folder)
    task, notes = convert_huggingface(folder)
    assert notes == ()
    assert_close(task.predict(TEXTS), golden["normalized"], atol=1e-5)


def test_bfloat16_is_read_exactly(folder):
    halves = {name: t.astype(ml_dtypes.bfloat16) for name, t in load_file(BERT / WEIGHTS).items()}
    change_tensors(folder, lambda _: halves)
    backbone = from_huggingface(folder).backbone
    found = np.asarray(backbone.blocks[1].feed_forward.intermediate.kernel)
    assert_same(found, halves["encoder.layer.1.intermediate.dense.weight"].astype("float32").T)
    assert found.dtype == np.float32


def test_heads_are_left_out_and_told(folder, golden):
    def with_heads(tensors):
        tensors = {name: tensor for name, tensor in tensors.items() if "pooler" not in name}
        heads = ("predictions.bias", "predictions.decoder.weight", "seq_relationship.bias")
        heads = [f"cls.{name}" for name in heads]
        return with_prefix(tensors) | {name: np.zeros(3, "float32") for name in heads}

    change_tensors(folder, with_heads)
    task, notes = convert_huggingface(folder)
    assert notes == (
        "Not used: the head of masked language modeling (cls.predictions.*).",
        "Not used: the head of next-sentence prediction (cls.seq_relationship.*).",
    )
    assert task.backbone.pooler is None
    assert_close(task.predict(TEXTS), golden["normalized"], atol=1e-5)
    with pytest.warns(UserWarning, match="Not used: the head of"):
        from_huggingface(folder)


def test_a_head_that_is_only_named_is_told(folder, golden):
    config(architectures=["BertForMultipleChoice"])(folder)
    task, notes = convert_huggingface(folder)
    assert notes == (
        f"{folder / 'config.json'}: BertForMultipleChoice is not supported; this is its encoder "
        "without a head.",
    )
    assert_close(task.predict(TEXTS), golden["normalized"], atol=1e-5)


SENTENCE = {
    "mean": ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
    "first": ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "first"),
    "first, later version": ({"pooling_mode": "cls", "embedding_dimension": 21}, "first"),
    "max": ({"pooling_mode_max_tokens": True, "word_embedding_dimension": 21}, "max"),
}


@pytest.mark.parametrize("name", SENTENCE)
@pytest.mark.parametrize("normalize", [True, False])
def test_settings_of_sentence_transformers(name, normalize, folder):
    pooling, expected = SENTENCE[name]
    modules = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    as_sentence_transformer(folder, *modules, pooling=pooling, max_seq_length=7)
    task = from_huggingface(folder)
    assert (task.pooling, task.normalize, task.max_length) == (expected, normalize, 7)


def test_a_model_in_a_folder_below(tmp_path, golden):
    copy_of(BERT, tmp_path / "0_Transformer")
    as_sentence_transformer(tmp_path, "Transformer", "Pooling", "Normalize")
    modules = json.loads((tmp_path / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    write_json(tmp_path / "modules.json", modules)
    assert_close(from_huggingface(tmp_path).predict(TEXTS), golden["normalized"], atol=1e-5)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["tokenizer.json", "tokenizer_config.json"], False),
        (["tokenizer_config.json"], False),
        (["tokenizer.json"], False),
        ([], True),
    ],
)
def test_whether_words_are_lower_cased(files, expected, folder):
    """The key of tokenizer_config.json counts first, then tokenizer.json, then the default."""
    path = folder / "tokenizer.json"
    normalizer = json.loads(path.read_text())["normalizer"]
    options = {"lowercase": False, "strip_accents": False, "handle_chinese_chars": False}
    change_json(path, normalizer=normalizer | options)
    keys = {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": False}
    change_json(folder / "tokenizer_config.json", **keys)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if name not in files:
            (folder / name).unlink()
    tokenizer = from_huggingface(folder).tokenizer
    assert (tokenizer.lowercase, tokenizer.split_chinese) == (expected, expected)
    assert tokenizer.strip_accents is (None if expected else False)


def only_pickles(folder):
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def cut_shard(folder):
    shard(folder)
    truncate(folder / "model-00002-of-00002.safetensors")


def wrong_index(folder):
    shard(folder)
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"]["more"] = "model-00001-of-00002.safetensors"
    write_json(folder / INDEX, index)


def wrong_shard(folder):
    shard(folder)
    index = json.loads((folder / INDEX).read_text())
    first = next(iter(index["weight_map"]))
    index["weight_map"][first] = "model-00002-of-00002.safetensors"
    write_json(folder / INDEX, index)


def shard_outside(folder):
    shard(folder)
    write_json(folder / INDEX, {"weight_map": {"a": "../model.safetensors"}})


def other_vocabulary(folder):
    (folder / "vocab.txt").write_text((BERT / "vocab.txt").read_text() + "more\n")


def too_many_tokens(folder):
    (folder / "tokenizer.json").unlink()
    more = "".join(f"more{number}\n" for number in range(8))
    (folder / "vocab.txt").write_text((BERT / "vocab.txt").read_text() + more)


def padding_elsewhere(folder):
    (folder / "tokenizer.json").unlink()
    lines = (BERT / "vocab.txt").read_text().splitlines()
    (folder / "vocab.txt").write_text("\n".join([*lines[1:], lines[0]]) + "\n")


def modules(*kinds, **options):
    return lambda folder: as_sentence_transformer(folder, *kinds, **options)


_BIASES = ("pooler.dense.bias", "embeddings.LayerNorm.bias")

MISTAKES = {
    "no configuration": (removed("config.json"), "has no config.json: a checkpoint is a folder"),
    "damaged configuration": (
        lambda f: truncate(f / "config.json"),
        "config.json: valid JSON is expected",
    ),
    "a list": (lambda f: write_json(f / "config.json", []), "config.json: a JSON object is"),
    "lists in lists": (
        lambda f: (f / "config.json").write_text("[" * 10**5),
        "config.json: the JSON is nested too deeply",
    ),
    "architecture": (
        config(model_type="bort"),
        "config.json: this `model_type` is not supported; .* bert, .* Rec.* model_type='bort'",
    ),
    "positions": (
        config(position_embedding_type="relative_key"),
        "must be 'absolute'. Received: position_embedding_type='relative_key'",
    ),
    "decoder": (config(is_decoder=True), "`is_decoder` must be False. Received: is_decoder=True"),
    "activation": (config(hidden_act="prelu"), "config.json: `hidden_act` must be one of"),
    "heads": (
        config(num_attention_heads=4),
        r"^[^:]*config.json: `num_attention_heads` must divide `hidden_size`. Received: num_attent",
    ),
    "odd values": (
        config(layer_norm_eps="small"),
        "`layer_norm_eps` must be a number, 0 or more. Received: layer_norm_eps='small'",
    ),
    "odd vocabulary": (
        fast(model={"type": "WordPiece", "vocab": {"a": 0, "b": "c"}}),
        "tokenizer.json: `model.vocab` must be an object of tokens and their ids",
    ),
    "wrong size": (
        config(intermediate_size=35),
        "of another shape: .*intermediate.dense.bias .37,. instead of .35,.* and 3 more",
    ),
    "impossible size": (
        config(intermediate_size=10**14),
        "config.json: A model of .*intermediate_size=1.* at most 12,000,000,000 parameters",
    ),
    "fewer layers": (config(num_hidden_layers=1), "left over: encoder.layer.1.* and 13 more"),
    "more layers": (config(num_hidden_layers=3), "missing: encoder.layer.2.* and 13 more"),
    "no tensor": (without(*_BIASES), "missing: embeddings.LayerNorm.bias, pooler.dense.bias.$"),
    "twice": (
        tensors(lambda tensors: tensors | {"bert.pooler.dense.bias": np.zeros(21, "float32")}),
        "two tensors must not be mapped to the same weight. Received: tensors=",
    ),
    "whole numbers": (
        tensors(lambda tensors: tensors | {_BIASES[0]: np.zeros(21, "int8")}),
        "dtype of pooler.dense.bias .* must be one of 'F64', .*'I8'",
    ),
    "pickles": (only_pickles, "which are never opened .* Received: found=.'pytorch_model.bin'."),
    "no weights": (removed(WEIGHTS), "contains neither model.safetensors nor"),
    "lost shard": (lose_shard, "model-00002-of-00002.safetensors: no such file, although"),
    "cut shard": (cut_shard, "model-00002-of-00002.safetensors is damaged or not a safe"),
    "wrong index": (wrong_index, "'more' is in no file, and by model.safetensors.index.json in mo"),
    "wrong shard": (wrong_shard, "01-of-00002.safetensors, and by .*json in model-00002-of-00002"),
    "length of texts": (
        tokenizer_config(model_max_length="x"),
        "tokenizer_config.json: `model_max_length` must be a number above 0.",
    ),
    "shard outside": (
        shard_outside,
        "`weight_map` must only list files of its folder. Rec.*: a='../mo",
    ),
    "no vocabulary": (
        removed("vocab.txt", "tokenizer.json"),
        r"checkpoint: no tokenizer file \(tokenizer.json, vocab.txt",
    ),
    "two vocabularies": (other_vocabulary, "vocab.txt and tokenizer.json must have"),
    "large vocabulary": (too_many_tokens, "is larger than the embedding. .* tokens=30, rows=29"),
    "mask token": (tokenizer_config(mask_token="<m>"), "config.json: `mask_token` must be a tok"),
    "never split": (tokenizer_config(never_split=["a"]), "`never_split` is not supported"),
    "normalizer": (
        fast(normalizer={"type": "Own"}),
        "tokenizer.json: `normalizer` must be one of BertNormalizer, .* normalizer='Own'",
    ),
    "added token": (
        fast(added_tokens=[{"content": "<S>", "id": 3}]),
        r"tokenizer.json: Tokens must not have the same id. Received: tokens=\['sat', '<S>'\]",
    ),
    "frame": (fast(post_processor={"type": "ByteLevel"}), "`post_processor` must produce a st"),
    "first module": (modules("Pooling"), "first module must be a Transformer. .*type='Pooling'"),
    "pooling": (
        modules("Transformer", "Pooling", pooling={"pooling_mode_median": True}),
        "must be one of 'cls_token'.*'median'",
    ),
    "pooling key": (
        modules("Transformer", "Pooling", pooling={"pooling_mode": "mean", "weights": 1}),
        "1_Pooling/config.json: `weights` is not supported",
    ),
}

test_mistakes_take_one_line = mistakes(MISTAKES)


def test_no_folder(tmp_path):
    refused("nowhere does not exist", convert_huggingface, tmp_path / "nowhere")

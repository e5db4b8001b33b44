"""`convert` and what follows it: predict, export, verify; mistakes take one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.convert.made import (
    BERT,
    GOLDEN,
    TEXTS,
    WEIGHTS,
    add_layers,
    change_tensors,
    change_vocabulary,
    config,
    copy_of,
    lose_shard,
    pickle_weights,
    shrink_embedding,
    truncate,
)
from tests.convert.naive_g2p import made_arrays, predicted

pytestmark = pytest.mark.tensorflow

FOLDERS = sorted(file.parent.name for file in GOLDEN.glob("*/tokenizer_config.json"))


def test_converted_predicted_exported_verified(keras_attn, tmp_path):
    task, exported = tmp_path / "task", tmp_path / "exported"
    assert keras_attn("convert", BERT, task) == (0, f"{task}\n", "")
    assert keras_attn("export", task, exported)[0] == 0
    assert keras_attn.output("verify", exported).startswith(f"{exported / '1'}: verified\n")
    expected = np.load(GOLDEN / "bert_outputs.npz")["normalized"]
    for model in (task, exported):
        output = keras_attn.output("predict", model, "--", *TEXTS)
        found = np.array([json.loads(line) for line in output.splitlines()])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_task_goes_back_to_hugging_face(keras_attn, tmp_path):
    task, out = tmp_path / "task", tmp_path / "huggingface"
    keras_attn("convert", BERT, task)
    assert keras_attn("convert", "--to", "huggingface", task, out) == (0, f"{out}\n", "")
    found, expected = (load_file(folder / WEIGHTS) for folder in (out, BERT))
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, atol=1e-6)
    error = keras_attn.refusal("convert", "--to", "huggingface", task, out)
    expected = f"{out} holds a checkpoint: name another folder, or give --overwrite."
    assert error == f"keras-attn: error: {expected}\n"
    assert keras_attn("convert", "--to", "huggingface", task, out, "--overwrite")[0] == 0
    assert keras_attn("convert", out, task, "--overwrite") == (0, f"{task}\n", "")


def test_a_task_of_another_model_is_refused(keras_attn, tmp_path):
    task = Path(__file__).parents[2] / "saved_models" / "g2p_en"
    error = keras_attn.refusal("convert", "--to", "huggingface", task, tmp_path / "out")
    assert (
        "supported are Bert, GPT2, Marian, PatchEncoder, T5. Received: model=Transformer." in error
    )
    assert not (tmp_path / "out").exists()


def test_heads_that_are_left_out_are_told(keras_attn, tmp_path):
    folder = copy_of(BERT, tmp_path / "checkpoint")
    head = {"classifier.weight": np.zeros((2, 21), "float32")}
    change_tensors(folder, lambda tensors: tensors | head)
    told = "Not used: the classifier (classifier.*).\n"
    task = tmp_path / "task"
    assert keras_attn("convert", folder, task) == (0, f"{task}\n", told)


def test_a_task_that_is_there_is_kept_unless_told_otherwise(keras_attn, tmp_path):
    task = tmp_path / "task"
    assert keras_attn("convert", GOLDEN / "gpt2", task)[0] == 0
    before = (task / "task.json").read_bytes()
    error = keras_attn.refusal("convert", BERT, task)
    expected = f"{task} holds a task: name another folder, or give --overwrite."
    assert error == f"keras-attn: error: {expected}\n"
    assert (task / "task.json").read_bytes() == before
    assert keras_attn("convert", BERT, task, "--overwrite") == (0, f"{task}\n", "")
    assert (task / "task.json").read_bytes() != before


def test_an_embedding_far_larger_than_the_vocabulary_is_told(keras_attn, tmp_path):
    folder = copy_of(BERT, tmp_path / "checkpoint")
    path = folder / "vocab.txt"
    (folder / "tokenizer.json").unlink()
    tokens = path.read_text(encoding="utf-8").splitlines()[:14]  # of 29 rows
    path.write_text("\n".join([*tokens[:-1], "[MASK]"]) + "\n", encoding="utf-8")
    task = tmp_path / "task"
    told = (
        f"{folder}: 15 of the embedding's 29 rows have no token in the vocabulary, "
        "which may belong to another model.\n"
    )
    assert keras_attn("convert", folder, task) == (0, f"{task}\n", told)


def test_classifiers_of_pairs(keras_attn, tmp_path):
    task, pair = tmp_path / "task", "the cat\ta dog"
    assert keras_attn("convert", GOLDEN / "bert_of_texts", task, "--pairs")[0] == 0
    code, answer, _ = keras_attn("predict", task, pair)
    assert (code, answer.strip() in ("very bad", "fair", "good")) == (0, True)
    error = keras_attn.refusal("convert", BERT, tmp_path / "other", "--pairs")
    assert (
        "--pairs is for classifiers with one label a text. Received: architectures=['BertModel']"
        in error
    )


MISTAKES = {
    "a lost shard": (
        lose_shard,
        "model-00002-of-00002.safetensors: no such file, although model.s",
    ),
    "cut tensors": (
        lambda folder: truncate(folder / WEIGHTS),
        "/model.safetensors is damaged or not a safetensors file: ",
    ),
    "a pickle in their place": (
        pickle_weights,
        "/model.safetensors is damaged or not a safetensors file: ",
    ),
    "pickles alone": (
        lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
        " contains no model.safetensors, only pickles, which are never opened because they can ",
    ),
    "another architecture": (
        config(model_type="elektra"),
        "/config.json: this `model_type` is not supported; supported are albert, bert, big_bird, ",
    ),
    "a small embedding": (
        shrink_embedding,
        "the vocabulary is larger than the embedding. Received",
    ),
    "another vocabulary": (
        lambda folder: change_vocabulary(folder, 10**14),
        "/config.json: `vocab_size` must be the number of rows of a tensor. Received: vocab_",
    ),
    "more layers than tensors": (add_layers, " tensors. Received: "),
}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_takes_one_line_and_leaves_nothing_behind(mistake, name, keras_attn, tmp_path):
    spoil, message = MISTAKES[mistake]
    folder = copy_of(GOLDEN / name, tmp_path / "checkpoint")
    spoil(folder)
    error = keras_attn.refusal("convert", folder, tmp_path / "task")
    assert error.startswith(f"keras-attn: error: {folder}")
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.slow
def test_the_model_of_g2p_en(keras_attn, tmp_path):
    arrays, task, exported = made_arrays(), tmp_path / "task", tmp_path / "exported"
    np.savez(tmp_path / "checkpoint20.npz", **arrays)
    assert keras_attn("convert", tmp_path / "checkpoint20.npz", task) == (0, f"{task}\n", "")
    assert keras_attn("export", task, exported)[0] == 0
    assert keras_attn("verify", exported)[0] == 0
    expected = "".join(" ".join(predicted(arrays, word)) + "\n" for word in ("hello", "zebra"))
    for model in (task, exported):
        assert keras_attn("predict", model, "hello", "zebra") == (0, expected, "")
    error = keras_attn.refusal("convert", tmp_path / "other.npz", tmp_path / "other")
    assert error == f"keras-attn: error: {tmp_path / 'other.npz'}: no such file.\n"

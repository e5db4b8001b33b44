"""Copies of the golden checkpoints, changes to them, and what comes of mistakes."""

import json
import pathlib
import pickle
import shutil
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn.convert import convert_huggingface, from_huggingface
from keras_attn.generation import beam_search, greedy_search
from keras_attn.tasks import Task
from tests.refusals import refused_in_one_line

GOLDEN = pathlib.Path(__file__).parent / "golden"
BERT = GOLDEN / "bert"
GPT2 = GOLDEN / "gpt2"
T5 = {name: GOLDEN / name for name in ("t5", "t5_v1_1")}
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TEXTS = [
    "The cats sat on the mat.",
    "",
    "ÜBER, a cat! Cats cats cat a dog sat on the cat, the dog sat.",
    "日本 fox [MASK] a",
]
"""What `make_bert_golden.py` has embedded."""


def converted(folder):
    """The task of a folder of which there is nothing to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return from_huggingface(folder)


def rows_of(ids):
    """Rows that each end with -1."""
    ends = np.flatnonzero(ids < 0)
    return [row[:-1] for row in np.split(ids, ends + 1)[:-1]]


def search(step, state, beams, **options):
    """Searches as transformers does."""
    options |= {"length_penalty": 1.0, "length_penalty_form": "length"}
    if beams == 1:
        return greedy_search(step, state, **options)
    return beam_search(step, state, beams, stopping="heuristic", **options)


def assert_generated(found, expected, end):
    """The best hypotheses are what transformers generated: many texts of several lengths."""
    ids = np.asarray(found.token_ids)[:, 0]
    assert len({tuple(row) for row in expected}) >= 50
    assert len(set((expected > 0).sum(1))) >= 5
    np.testing.assert_array_equal(
        np.where(ids == end, 0, ids), np.where(expected == end, 0, expected)
    )


def copy_of(folder, target):
    return shutil.copytree(folder, target, dirs_exist_ok=True)


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def change_json(path, **values):
    """Sets keys of a JSON object; `...` removes one."""
    content = json.loads(path.read_text(encoding="utf-8")) | values
    write_json(path, {key: value for key, value in content.items() if value is not ...})


def change_tensors(folder, change):
    """Writes what `change` makes of the tensors, a dict."""
    tensors = load_file(folder / WEIGHTS)
    save_file(change(dict(tensors)), folder / WEIGHTS)


def shard(folder):
    """Splits the weights over two files with an index."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = sorted(tensors)
    parts = {
        "model-00001-of-00002.safetensors": names[::2],
        "model-00002-of-00002.safetensors": names[1::2],
    }
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    index = {name: file for file, part in parts.items() for name in part}
    write_json(folder / INDEX, {"metadata": {"total_size": 1}, "weight_map": index})


def lose_shard(folder):
    shard(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def pickle_weights(folder):
    """Puts a pickle where safetensors are expected, under their name."""
    (folder / WEIGHTS).write_bytes(pickle.dumps({"weight": [1.0] * 99}))


def add_layers(folder):
    content = json.loads((folder / "config.json").read_text())
    keys = ("n_layer", "decoder_layers", "num_decoder_layers", "num_hidden_layers")
    config(**{next(key for key in keys if key in content): 10**9})(folder)


def change_vocabulary(folder, size):
    """Sets the numbers of tokens in `config.json`; gives those that were there."""
    path = folder / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    found = {key: content[key] for key in ("vocab_size", "decoder_vocab_size") if key in content}
    change_json(path, **dict.fromkeys(found, size))
    return set(found.values())


def shrink_embedding(folder, size=9):
    """Cuts the tensors of a vocabulary, and its size, to fewer than its tokens."""
    sizes = change_vocabulary(folder, size)

    def cut(tensor):
        return tensor[tuple(slice(size if axis in sizes else None) for axis in tensor.shape)]

    change_tensors(folder, lambda tensors: {name: cut(tensor) for name, tensor in tensors.items()})


def tensors(change):
    return lambda folder: change_tensors(folder, change)


def without(*parts):
    """Drops the tensors with these parts in their names."""
    return tensors(
        lambda tensors: {
            name: tensor
            for name, tensor in tensors.items()
            if not any(part in name for part in parts)
        }
    )


def removed(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def as_sentence_transformer(folder, *modules, pooling=None, **sizes):
    """Adds the files that sentence-transformers writes."""
    paths = {"Transformer": "", "Pooling": "1_Pooling"}
    content = [
        {
            "idx": number,
            "path": paths.get(kind, f"{number}_{kind}"),
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(modules)
    ]
    write_json(folder / "modules.json", content)
    write_json(folder / "1_Pooling" / "config.json", pooling or {"pooling_mode_mean_tokens": True})
    write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": None, "do_lower_case": False} | sizes,
    )


def config(**values):
    return lambda folder: change_json(folder / "config.json", **values)


def tokenizer_config(**values):
    return lambda folder: change_json(folder / "tokenizer_config.json", **values)


def generation(**values):
    return lambda folder: change_json(folder / "generation_config.json", **values)


def fast(**values):
    return lambda folder: change_json(folder / "tokenizer.json", **values)


def check_mistake(spoil, message, folder):
    """Converting the spoiled folder, a "checkpoint", fails with one line that names it."""
    spoil(folder)
    assert "checkpoint" in refused_in_one_line(message, convert_huggingface, folder)


def mistakes(cases):
    """A test of each case: how the folder is spoiled, and a pattern for the error."""

    @pytest.mark.parametrize("name", cases)
    def test(name, folder):
        check_mistake(*cases[name], folder)

    return test


def loaded(task, tmp_path):
    """A task that was saved and loaded."""
    task.save(tmp_path / "task")
    return Task.load(tmp_path / "task")

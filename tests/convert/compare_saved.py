"""Compares what `save_huggingface` writes with what transformers reads.

Not among the tests, because it needs PyTorch and transformers. The first command writes a folder,
and beside it FOLDER.npz with the ids and outputs of the task for odd texts. The second needs
nothing of this package: it loads the folder with transformers, and fails if ids or outputs differ.

    python tests/convert/compare_saved.py write TASK FOLDER
    python tests/convert/compare_saved.py check FOLDER

TASK is a task, a run, or a checkpoint to convert first. Outputs may differ by 1e-5 of the largest.
"""

import json
import sys
from pathlib import Path

import numpy as np

MOST = 1e-5
TEXTS = [
    "The cats sat on the mat.",
    "",
    " ",
    "ÜBER, a cat! Cats cats cat a dog",
    "Café déjà vu, nai\u0308ve résumé!",
    "東京は日本の首都です。",
    "“Don't do it”, he said … (twice).",
    "Robots 🤖 & emojis 😀👩‍👩‍👧",
    "x" * 120,
    "ÅNGSTRÖM Straße İstanbul ﬁ ½",
    "E = mc^2, 3.14159, 1,000,000",
    "Tabs\tand\nline feeds\r\n and\u00a0spaces\u3000 of   kinds",
    "\u200bzero\u200dwidth \ufeff marks\x00 \x1f control",
    "don't WE'LL they've I'd",
    "café\u0301 \u0e01\u0e33 हिन्दी",
    "a_b-c/d\\e ##s ## <x> &amp;",
]


def write(source, folder):
    """Writes the folder, and the task's ids and outputs."""
    import tensorflow as tf

    from keras_attn.convert import from_huggingface, write_huggingface
    from keras_attn.tasks import Task, task_folder

    is_checkpoint = (source / "config.json").exists()
    task = from_huggingface(source) if is_checkpoint else Task.load(task_folder(source))
    print(*write_huggingface(task, folder), sep="\n")
    (tokenizer, *_) = task.tokenizers.values()
    generates = hasattr(task, "decoding")
    most = (task.decoding.max_source_length if generates else task.max_length) - 2
    lengths = tokenizer.tokenize(tf.constant(TEXTS)).row_lengths().numpy()
    texts = [text for text, length in zip(TEXTS, lengths, strict=True) if length <= most]
    ids = tokenizer.tokenize(tf.constant(texts))
    if len(task.tokenizers) > 1:
        ids = tf.concat([ids, tf.fill([len(texts), 1], tokenizer.end_id)], axis=1)
        targets = task.tokenizers["target"].tokenize(tf.constant(texts))[:, :5].to_tensor()
        targets = tf.pad(targets, [[0, 0], [1, 0]], constant_values=tokenizer.start_id)
        found = {"ids": ids.to_tensor(), "target_ids": targets}
        outputs = task.backbone({"source_ids": found["ids"], "target_ids": targets})
    else:
        if task.kind != "causal_lm":
            start, end = (
                tf.fill([len(texts), 1], i) for i in (tokenizer.start_id, tokenizer.end_id)
            )
            ids = tf.concat([start, ids, end], axis=1)
        found = {"ids": ids.to_tensor()}
        outputs = task.backbone({"token_ids": found["ids"]})
        if task.kind == "regression":
            outputs = outputs * task.deviations + task.means
    found = {name: np.asarray(value) for name, value in found.items()}
    kind = np.array(task.kind)
    np.savez(folder.with_suffix(".npz"), kind=kind, texts=texts, outputs=outputs, **found)


def check(folder):
    """Returns whether transformers reads the same ids and computes the same outputs."""
    import torch
    import transformers

    config = json.loads((folder / "config.json").read_text())
    with np.load(folder.with_suffix(".npz")) as arrays:
        ours = dict(arrays)
    theirs = ids_of(config)
    kind, texts = str(ours["kind"]), ours["texts"].tolist()
    architecture = getattr(transformers, config["architectures"][0])
    model, told = architecture.from_pretrained(folder, output_loading_info=True)
    print("loading:", {key: sorted(map(str, names))[:4] for key, names in told.items() if names})
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.padding_side = "right"
    read = tokenizer(
        texts, padding=True, return_tensors="pt", add_special_tokens=kind != "causal_lm"
    )
    # Marian may have a vocabulary for each side.
    of_sources = ids_of(config | {"decoder_start_token_id": tokenizer.pad_token_id})
    others = []
    for row, text in enumerate(texts):
        found = read["input_ids"][row][read["attention_mask"][row] == 1].numpy()
        expected = of_sources(ours["ids"][row][ours["ids"][row] != 0])
        if found.tolist() != expected.tolist():
            others.append(text)
            print(f"  {text!r}: {found.tolist()[:30]} instead of {expected.tolist()[:30]}")
    print(f"{type(tokenizer).__name__}: other ids for {len(others)} of {len(texts)} texts")

    mask = torch.tensor(ours["ids"] != 0)
    inputs = {"input_ids": torch.tensor(np.where(mask, of_sources(ours["ids"]), 0)).long()}
    inputs["attention_mask"] = mask.long()
    if "target_ids" in ours:
        target_ids = ours["target_ids"]
        decoded = np.where(target_ids != 0, theirs(target_ids), 0)
        inputs["decoder_input_ids"] = torch.tensor(decoded).long()
    if config["model_type"] == "longformer":
        inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
        inputs["global_attention_mask"][:, 0] = 1
    with torch.no_grad():
        found = model.eval()(**inputs)
    found = (found.logits if "logits" in found else found.last_hidden_state).numpy()
    expected = ours["outputs"]
    if kind in ("causal_lm", "seq2seq", "span_corruption", "masked_lm"):  # logits of ids
        first = 0 if config.get("pad_token_id") == 0 and config["model_type"] == "bert" else 1
        rows = np.arange(first, expected.shape[-1])
        expected, found = expected[..., rows], found[..., theirs(rows)]
        expected = np.where(expected < -1e4, found, expected)  # of what is never predicted
    if found.ndim == 3:
        real = (ours["target_ids"] if "target_ids" in ours else ours["ids"]) != 0
        found, expected = found[real], expected[real]
    largest = np.abs(expected).max()
    difference = np.abs(found - expected).max()
    print(f"{architecture.__name__}: largest difference {difference:.1e}, of {largest:.1f}")
    return not others and difference <= MOST * max(1, largest)


def ids_of(config):
    """Makes the checkpoint's ids of ours."""
    kind = config["model_type"]
    if kind in ("gpt2", "t5"):
        return lambda ids: ids - 1
    if kind == "marian":
        start = config["decoder_start_token_id"]
        return lambda ids: np.where(ids == 1, start, np.where(ids - 2 < start, ids - 2, ids - 1))
    padding = config["pad_token_id"]
    return lambda ids: np.where(ids == 0, padding, ids - (ids <= padding))


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    sys.exit(
        0 if {"write": write, "check": check}[command](*map(Path, paths)) in (None, True) else 1
    )

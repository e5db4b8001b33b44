"""Convert a Hugging Face checkpoint to a task folder, or a task to a Hugging Face checkpoint.

CHECKPOINT is a folder written by `save_pretrained` of transformers or sentence-transformers, with
config.json, safetensors and the files of the tokenizer. Supported models and their tasks:
  bert, roberta, xlm-roberta, camembert, distilbert, electra, albert, mpnet, deberta-v2 (and v3),
  modernbert, longformer, big_bird, nystromformer
           masked_lm (…ForMaskedLM), classification, multi_label_classification, regression or rank
           (…ForSequenceClassification, by its labels and problem_type), token_classification
           (…ForTokenClassification), question_answering (…ForQuestionAnswering), embedding (other
           architectures, and folders of sentence-transformers)
  gpt2     causal_lm
  t5       seq2seq (versions 1.0 and 1.1)
  marian   seq2seq, such as OPUS-MT
  vit, deit
           image_classification
From Python, keras_attn.convert.model_from_huggingface converts encoders without their tokenizers.
CHECKPOINT may also be checkpoint20.npz of the PyPI package g2p_en (English letters to phonemes).
With --to huggingface, CHECKPOINT is a run, task or export whose model is one of the above, and OUT
becomes a folder that transformers (and for embeddings sentence-transformers) loads.
Pickles are not opened. Parts of the checkpoint that are not used, such as the head of next-sentence
prediction, are reported on standard error.

examples:
  keras-attn convert all-MiniLM-L6-v2 models/minilm
  keras-attn predict models/minilm "A sentence."
  keras-attn export models/minilm exported/minilm
  keras-attn convert nli-bert models/nli --pairs   # reads "premise<TAB>hypothesis"
  keras-attn convert bert-base-uncased models/bert
  keras-attn predict models/bert "The capital of France is [MASK]."
  keras-attn convert gpt2 models/gpt2 && keras-attn predict models/gpt2 "Once upon a time" --sample
  keras-attn convert t5-small models/t5
  keras-attn predict models/t5 "translate English to German: That is good."
  keras-attn convert opus-mt-en-de models/en-de && keras-attn predict models/en-de "That is good."
  keras-attn convert --to huggingface runs/reviews huggingface/reviews
  keras-attn convert g2p_en/checkpoint20.npz models/g2p && keras-attn predict models/g2p attention
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_attn.checkpoints import check_checkpoint
from keras_attn.cli.terminal import quiet_start
from keras_attn.documents import read_json_object
from keras_attn.task_folders import TASK_FILE, task_folder
from keras_attn.validation import UserError, require

_FOR_CLASSIFIERS = "--pairs is for classifiers with one label a text."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `convert`."""
    add = parser.add_argument
    add("checkpoint", metavar="CHECKPOINT", help="its folder, or its .npz file")
    add("out", metavar="OUT", help="the folder to write, new or empty")
    add(
        "--to",
        choices=["task", "huggingface"],
        default="task",
        help="what to write (default: task)",
    )
    add("--pairs", action="store_true", help="a classifier reads pairs of texts, tab between them")
    add("--overwrite", action="store_true", help="replace an existing task or checkpoint")


def run(options: argparse.Namespace) -> None:
    """Converts, and prints where the result was written."""
    if options.to == "huggingface":
        _save(options)
        return
    if Path(options.checkpoint).suffix != ".npz":
        path = check_checkpoint(options.checkpoint)
        names = read_json_object(path).get("architectures") or []
        is_classifier = any(str(name).endswith("ForSequenceClassification") for name in names)
        require(is_classifier or not options.pairs, _FOR_CLASSIFIERS, architectures=names)
    _check_free(options, TASK_FILE, "task")
    with quiet_start():
        from keras_attn.convert import convert_checkpoint

    conversion = convert_checkpoint(options.checkpoint)
    task: Any = conversion.task
    if options.pairs:
        is_classifier = task.kind == "classification"
        require(is_classifier, _FOR_CLASSIFIERS, task=task.kind)
        task.read_pairs(True)
    _print_notes(conversion.notes)
    task.save(options.out)
    print(options.out)


def _save(options: argparse.Namespace) -> None:
    """Writes a checkpoint of Hugging Face."""
    require(not options.pairs, "A task knows whether it reads pairs.", pairs=options.pairs)
    folder = task_folder(options.checkpoint)
    _check_free(options, "config.json", "checkpoint")
    with quiet_start():
        from keras_attn.convert import write_huggingface
        from keras_attn.tasks import Task

    _print_notes(write_huggingface(Task.load(folder), options.out))
    print(options.out)


def _check_free(options: argparse.Namespace, file: str, what: str) -> None:
    """Refuses to replace what an earlier conversion wrote, unless that is asked for."""
    if not options.overwrite and Path(options.out, file).exists():
        raise UserError(f"{options.out} holds a {what}: name another folder, or give --overwrite.")


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        print(note, file=sys.stderr)

"""Convert a checkpoint of other people to a task folder."""

import argparse
import sys
from pathlib import Path

from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError

EPILOG = """\
CHECKPOINT is what `save_pretrained` of transformers, or sentence-transformers, writes: a folder
with config.json, safetensors and the tokenizer's files. Supported are BERT (model_type bert), whose
architecture says what it becomes: BertForMaskedLM and BertForPreTraining a task that fills gaps,
BertForSequenceClassification one that gives texts labels, BertForTokenClassification one that
gives words tags, any other one that gives texts vectors; GPT-2 (gpt2), which continues texts; and
T5 (t5), versions 1.0 and 1.1, and Marian (marian), such as OPUS-MT, which turn texts into texts.
Or it is checkpoint20.npz of the PyPI package g2p_en, which turns English letters into phonemes.
Pickles are not opened. Parts of the checkpoint that are left out, such as the head of next-sentence
prediction, are told on standard error.

examples:
  keras-attn convert all-MiniLM-L6-v2 models/minilm
  keras-attn predict models/minilm "A sentence."
  keras-attn export models/minilm exported/minilm
  keras-attn convert bert-base-uncased models/bert
  keras-attn predict models/bert "The capital of France is [MASK]."
  keras-attn convert gpt2 models/gpt2 && keras-attn predict models/gpt2 "Once upon a time" --sample
  keras-attn convert t5-small models/t5
  keras-attn predict models/t5 "translate English to German: That is good."
  keras-attn convert opus-mt-en-de models/en-de && keras-attn predict models/en-de "That is good."
  keras-attn convert g2p_en/checkpoint20.npz models/g2p && keras-attn predict models/g2p attention
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `convert`."""
    add = parser.add_argument
    add("checkpoint", metavar="CHECKPOINT", help="its folder, or its .npz file")
    add("task", metavar="OUT", help="the task folder to write, new or empty")
    add("--overwrite", action="store_true", help="write in place of a task that is there")


def run(options: argparse.Namespace) -> None:
    """Converts, and prints where the task was written."""
    with quiet_start():
        from keras_attn.convert import convert_checkpoint
        from keras_attn.tasks.base import TASK_FILE

    if not options.overwrite and Path(options.task, TASK_FILE).exists():
        raise UserError(f"{options.task} holds a task: name another folder, or give --overwrite.")
    conversion = convert_checkpoint(options.checkpoint)
    for note in conversion.notes:
        print(note, file=sys.stderr)
    conversion.task.save(options.task)
    print(options.task)

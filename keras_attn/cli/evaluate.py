"""Measure a trained or exported model on texts or images."""

import argparse
import json
from pathlib import Path

from keras_attn.cli import decoding_options
from keras_attn.cli.output_file import output_file
from keras_attn.cli.terminal import progress, quiet_start
from keras_attn.files import write_text
from keras_attn.validation import require

EPILOG = """\
Lines with the same source are one item with several references (for tags, every line is an item).

metrics:
  per, wer             phoneme (symbol) and whole-text error rate, in percent
  exact_match          100 - wer
  bleu, chrf           by sacrebleu, on detokenized text
  bleu_tokenized       BLEU of text that is already tokenized
  mrr, recall_at_1, recall_at_10   embeddings: retrieval of each source's target among all
                       targets, in percent
  perplexity, accuracy masked language models: of hidden tokens (15%); runs of span corruption: of
                       removed spans (15% of the tokens); accuracy in percent
  tag_accuracy         tags: words with the right tag, in percent
  span_f1, span_precision, span_recall   tags in IOB2 (B-X, I-X, O): spans with the right first
                       and last word and kind, as in CoNLL, in percent; any other tag is a span of
                       one word
  spearman, pearson    embeddings, for lines of text<TAB>text<TAB>score: correlation of the
                       cosines with the scores, times 100
  rouge1, rouge2, rougeL, rougeLsum
                       by rouge-score, for English summaries (pip install 'keras_attn[rouge]')

examples:
  keras-attn evaluate runs/g2p --data cmudict
  keras-attn evaluate exported/en-de --data test.en test.de --metrics bleu chrf --json scores.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `evaluate`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run, a task folder or a SavedModel")
    add(
        "--data",
        nargs="+",
        required=True,
        metavar="DATA",
        help="cmudict (its test words), FILE.tsv, SRC TGT; for language models FILE …; for images "
        "digits, FOLDER or FILE.tsv (see `keras-attn train --help`)",
    )
    add(
        "--metrics",
        nargs="+",
        metavar="NAME",
        help="metrics (default: those of the run, or of the kind of data)",
    )
    add("--perplexity", action="store_true", help="add the perplexity of the targets")
    decoding_options.add_arguments(parser)
    add("--stress", action="store_true", default=None, help="cmudict: keep stress marks")
    add("--skip-bad-lines", action="store_true", help="skip malformed lines and count them")
    add("--json", type=output_file, metavar="FILE", help="also write the results to a file")


def run(options: argparse.Namespace) -> None:
    """Measures and prints, one line a metric."""
    with quiet_start():
        from keras_attn.tasks import open_task
        from keras_attn.training.run_settings import DataSettings
        from keras_attn.training.task_runs import TASK_RUNS

    run_settings = _settings_of_run(options.model)
    stress = options.stress
    if stress is None:
        stress = run_settings.get("data", {}).get("stress", False)
    data = DataSettings(options.data, stress=stress, skip_bad_lines=options.skip_bad_lines)
    task = decoding_options.decoding_as_told(open_task(options.model), options.set)
    # The task of the run, since a kind of task may be trained in several ways.
    name = run_settings.get("task") or task.kind
    require(
        name in TASK_RUNS,
        "This kind of task cannot be evaluated.",
        model=options.model,
        kind=name,
    )
    kind = TASK_RUNS[name]
    texts = kind.read_test(options.data, data)
    metrics = options.metrics or kind.metrics_of(texts, options.data, run_settings.get("metrics"))
    for line in kind.remarks(task, texts):
        print(line)
    with progress(kind.count(texts), "measuring") as done:
        results = kind.measure(task, texts, metrics, options.beams, options.perplexity, done)
    items = results.pop("items")
    print(f"{kind.items:<15} {items:>9,}")
    for name, value in results.items():
        print(f"{name:<15} {value:>9.2f}" if isinstance(value, float) else f"{name}  {value}")
    if options.json:
        text = json.dumps({"items": items} | results, indent=1)
        write_text(options.json, f"{text}\n")


def _settings_of_run(model: str) -> dict:
    """The settings of the run that `model` is, or belongs to."""
    from keras_attn.training.run_settings import RUN_FILE, read_yaml

    for folder in (Path(model), Path(model).resolve().parent):
        if (folder / RUN_FILE).is_file():
            return read_yaml(folder / RUN_FILE)
    return {}

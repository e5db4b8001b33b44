"""Measure a trained or exported model on texts or images.

Rows with the same source are one item with several references (for labels and tags, every row is an
item).

metrics:
  per, wer             phoneme (symbol) and whole-text error rate, in percent
  accuracy, macro_f1, weighted_f1   labels: in percent; also a table of all labels, and with --json
                       the confusion matrix; calibration_error is the mean difference of the
                       probability of a label and how often it is right
  exact_match          100 - wer; for labels the accuracy; for several labels a text: texts with
                       all of their labels and no others
  micro_f1, macro_f1, weighted_f1   several labels a text: in percent; also a table of all labels
  mae, rmse            numbers: mean absolute error, and root of the mean squared error
  r2, pearson, spearman   numbers: fraction of the variance that is explained, and correlations,
                       times 100
  bleu, chrf           by sacrebleu, on detokenized text
  bleu_tokenized       BLEU of text that is already tokenized
  mrr, recall_at_1, recall_at_10   embeddings: retrieval of each source's target among all
                       targets, in percent
  mrr_at_10, ndcg_at_10, recall_at_1, recall_at_5, recall_at_10   passages of queries: reciprocal
                       rank of the first relevant one, discounted gain, and relevant ones among the
                       first, in percent
  exact_match, f1      answers to questions, by SQuAD's rules, in percent
  perplexity, accuracy masked language models: of hidden tokens (15%); runs of span corruption: of
                       removed spans (15% of the tokens); accuracy in percent
  tag_accuracy         tags: words with the right tag, in percent
  span_f1, span_precision, span_recall   tags in IOB2 (B-X, I-X, O): spans with the right first
                       and last word and kind, as in CoNLL, in percent; any other tag is a span of
                       one word
  spearman, pearson    embeddings, for lines of text<TAB>text<TAB>score: correlation of the
                       cosines with the scores, times 100
  mase, mae, wql, coverage   forecasts of the last tenth of each series: mean absolute error of the
                       median, divided by that of the seasonal naive forecast in the history, and
                       by itself; weighted quantile loss, and values between the outer quantiles, in
                       percent; naive_mase and so on: the seasonal naive forecast of the same steps
  rouge1, rouge2, rougeL, rougeLsum
                       by rouge-score, for English summaries (pip install 'keras_attn[rouge]')

examples:
  keras-attn evaluate runs/g2p --data cmudict
  keras-attn evaluate runs/a --ensemble runs/b runs/c --data test.tsv
  keras-attn evaluate exported/en-de --data test.en test.de --metrics bleu chrf --json scores.json
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attn.cli import decoding_options
from keras_attn.cli.options import (
    add_ensemble_option,
    add_reading_options,
    opened,
    output_file,
)
from keras_attn.cli.terminal import quiet_start
from keras_attn.files import write_text

_MOST_LABELS = 40
_LONGEST_LABEL = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `evaluate`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run, a task folder or a SavedModel")
    add(
        "--data",
        nargs="+",
        required=True,
        metavar="DATA",
        help="cmudict (its test words), TABLE …, SRC TGT; for language models FILE …; for images "
        "digits, FOLDER or TABLE (see `keras-attn train --help`)",
    )
    add_ensemble_option(parser)
    metrics = "metrics (default: those of the run, or of the kind of data)"
    add("--metrics", nargs="+", metavar="NAME", help=metrics)
    add("--perplexity", action="store_true", help="add the perplexity of the targets")
    decoding_options.add_arguments(parser)
    add("--stress", action="store_true", default=None, help="cmudict: keep stress marks")
    add_reading_options(parser)
    most = (
        "greatest part of the rows that --skip-bad-lines may leave out (default: the run's, 0.05)"
    )
    add("--max-dropped", type=float, metavar="PART", help=most)
    wrong = (
        "also write what was answered wrong, the worst first: error, input, correct, predicted; "
        "for language models all texts, by their loss a token"
    )
    add("--errors", type=output_file, metavar="FILE.csv", help=wrong)
    add("--json", type=output_file, metavar="FILE", help="also write the results to a file")


def run(options: argparse.Namespace) -> None:
    """Measures and prints, one line per metric."""
    with quiet_start():
        from keras_attn.training.measuring import evaluate, run_of
        from keras_attn.training.run_settings import DataSettings

    recorded = _settings_of_run(options.model)
    of_data = recorded.get("data", {})
    data = DataSettings(
        options.data,
        label_separator=options.label_separator or of_data.get("label_separator"),
        columns=options.columns,
        encoding=options.encoding,
        stress=_first(options.stress, of_data.get("stress"), False),
        skip_bad_lines=bool(options.skip_bad_lines),
        max_dropped=_first(
            options.max_dropped, of_data.get("max_dropped"), DataSettings.max_dropped
        ),
    )
    task = decoding_options.decoding_as_told(opened(options), options.set)
    how = {"beams": options.beams, "perplexity": options.perplexity}
    results = evaluate(task, data, options.metrics, recorded, options.errors, **how)
    items = results.pop("items")
    print(f"{run_of(task, recorded).items:<15} {items:>9,}")
    for name, value in results.items():
        if isinstance(value, float | str):
            number = isinstance(value, float)
            print(f"{name:<18} {_shown(value):>6}" if number else f"{name}  {value}")
    _print_labels(results.get("labels", {}))
    if options.json:
        text = json.dumps({"items": items} | results, indent=1)
        write_text(options.json, f"{text}\n")


def _first(*values: Any) -> Any:
    """The first of the values that is not `None`."""
    return next(value for value in values if value is not None)


def _shown(value: Any) -> str:
    """A number with two decimals, or three digits if it is small."""
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.3g}"


def _print_labels(labels: Mapping[str, Mapping[str, float]]) -> None:
    """Prints precision, recall and F1 of each label, the most frequent ones first."""
    if not labels:
        return
    rows = sorted(labels.items(), key=lambda row: -row[1]["items"])
    width = max(5, *(min(len(label), _LONGEST_LABEL) for label, _ in rows[:_MOST_LABELS]))
    print(f"\n{'label':<{width}}  precision  recall      f1    items")
    for label, row in rows[:_MOST_LABELS]:
        shown = f"{label[:_LONGEST_LABEL]:<{width}}"
        scores = f"{row['precision']:>9.2f}  {row['recall']:>6.2f}  {row['f1']:>6.2f}"
        print(f"{shown}  {scores}  {row['items']:>7,}")
    if len(rows) > _MOST_LABELS:
        print(f"… and {len(rows) - _MOST_LABELS:,} more labels (see --json)")


def _settings_of_run(model: str) -> dict:
    """The settings of the run that is `model`, or that holds it."""
    from keras_attn.training.run_settings import RUN_FILE, read_run_file

    for folder in (Path(model), Path(model).resolve().parent):
        if (folder / RUN_FILE).is_file():
            return read_run_file(folder / RUN_FILE)
    return {}

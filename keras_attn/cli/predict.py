"""Predict texts, labels or vectors with a trained or exported model.

Prints one line for each TEXT or each line of standard input; put `--` before a TEXT that begins
with a dash. --n-best and --samples print N lines for each text, after the number of the text and a
tab. --scores appends the score (log-probability divided by the length penalty) and the
log-probability, separated by tabs; for labels of texts and images, the probability.
Embedding models print each text's vector as a JSON list. Masked language models fill each [MASK]
with one token. Taggers print a tag for each word; their score is the log-probability of all tags
of a text. Of several labels a text, a JSON list of those that are
predicted is printed, and with --scores the probabilities of all; of numbers, the numbers, separated
by tabs. For rankers, TEXT is a query and its passages, with a tab before each passage; they are
printed with their scores, the best first. For question answering, TEXT is a question and its
context, with a tab between them; --scores appends the probability of the answer and where it begins
and ends in the context, in characters. With --columns, TEXT is the name of a table, and an
answer is printed for each row, also if its text has line breaks. For image classifiers, TEXT is the
name of a PNG file. For forecasters, TEXT is the name of a table of series: its forecast is printed
as CSV, with the quantiles of each time of the horizon.

By default a search prints the most probable texts that it finds. --sample instead draws tokens at
random from the model's distribution, which these options change, in this order:
  --repetition-penalty 1.2   makes tokens less probable that have occurred, also in the prompt
  --temperature 0.7   below 1 favors probable tokens, above 1 improbable ones
  --top-k 40          draws only from the 40 most probable tokens
  --top-p 0.9         draws only from the most probable tokens with 90% of the probability
Their defaults are the settings of the task (`keras-attn train --set decoding.temperature=0.7`). The
same --seed always draws the same texts.

--set decoding.NAME=VALUE changes the decoding of a task (that of a SavedModel is fixed):
  no_repeat_ngram=3          no sequence of three tokens occurs twice
  'banned_words=[the, "a b"]'   texts that must not occur in the generated text
  length_penalty=1.0         higher for longer texts; length_penalty_form=gnmt or length
  coverage_penalty=0.2       favors texts that cover the source (recurrent models with attention)
  stopping=exact             when a search stops: exact, early or heuristic
  min_length=5, max_length=60   in tokens, end included

examples:
  keras-attn predict runs/g2p hello world
  keras-attn predict exported/en-de < test.en > test.hyp
  keras-attn predict runs/g2p --beams 5 --n-best 3 --scores colonel
  keras-attn predict runs/a --ensemble runs/b runs/c < test.en
  keras-attn predict runs/en-de --prefix "Ein Hund" "A dog runs."
  keras-attn predict runs/en-de --set decoding.no_repeat_ngram=3 < test.en
  keras-attn predict runs/names --sample --samples 5 --top-p 0.9 --seed 7 Mar
  keras-attn predict runs/texts "A man is [MASK] a guitar."
  keras-attn predict runs/tags "Anna lives in Rome ."
  keras-attn predict runs/reviews reviews.csv --columns text=review > labels.txt
  keras-attn predict runs/digits --n-best 3 --scores scan.png
  keras-attn predict runs/co2 co2.csv > forecast.csv
  keras-attn predict runs/ranks candidates.csv --columns query=question passage=text
  keras-attn predict runs/vectors --npy vectors.npy < texts.txt
"""

import argparse
import itertools
import json
import math
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from keras_attn.cli import decoding_options
from keras_attn.cli.options import (
    add_ensemble_option,
    add_table_options,
    add_value,
    opened,
    output_file,
)
from keras_attn.cli.terminal import quiet_start
from keras_attn.files import replaced_file
from keras_attn.limits import LINE_BYTES
from keras_attn.progress import progress
from keras_attn.validation import UserError, require, require_positive

_CLASSIFIERS = ("classification", "image_classification", "multi_label_classification")
_CHUNK = 1024  # lines read before they are predicted
_SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty")

_Answers = Callable[[Sequence[Any], int], Iterator[str]]
"""Yields the lines for inputs, after a number of other inputs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `predict`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run, a task folder or a SavedModel")
    add("texts", nargs="*", metavar="TEXT", help="default: the lines of standard input")
    add_ensemble_option(parser)
    add_value(parser, "--n-best", 1, "hypotheses for each text")
    add("--scores", action="store_true", help="print scores and log-probabilities too")
    add(
        "--npy",
        type=output_file,
        metavar="FILE.npy",
        help="embedding models: write all vectors to a NumPy file, (texts, features) float32",
    )
    add(
        "--prompt",
        metavar="NAME",
        help="embedding models: put the prompt of that name before texts",
    )
    add_table_options(parser.add_argument_group("where TEXT is the name of a table"))
    add("--prefix", metavar="TEXT", help="beginning of every predicted text, in whole words")
    add("--sample", action="store_true", help="sample instead of searching")
    decoding_options.add_arguments(parser)
    add = parser.add_argument_group("with --sample").add_argument
    add("--samples", type=int, metavar="N", help="texts to draw for each text (default: 1)")
    add("--seed", type=int, metavar="S", help="seed of the random numbers (default: 0)")
    add("--temperature", type=float, metavar="T", help="divide the logits by T")
    add("--top-k", type=int, metavar="K", help="draw from the K most probable tokens, 0 for all")
    top_p = "draw from the most probable tokens that have P together, 1 for all"
    add("--top-p", type=float, metavar="P", help=top_p)
    add("--repetition-penalty", type=float, metavar="R", help="above 1 to avoid repetition")


def run(options: argparse.Namespace) -> None:
    """Predicts and prints."""
    require_positive(n_best=options.n_best)
    _check_together(options)
    with quiet_start():
        from keras_attn.tasks import read_inputs

    task = decoding_options.decoding_as_told(opened(options), options.set)
    require(
        hasattr(task, "sample") or not (options.sample or options.prefix is not None),
        "--sample and --prefix are for models that generate text.",
        task=task.kind,
    )
    require(
        options.prompt is None or task.kind == "embedding",
        "--prompt is for embedding models.",
        task=task.kind,
    )
    if task.kind == "forecast":
        _print_forecasts(task, options)
        return
    require(
        options.columns is not None or options.encoding is None,
        "--encoding is for tables: add --columns.",
        encoding=options.encoding,
    )
    if options.columns is None:
        _refuse_files(task, options.texts)
    texts = options.texts or _lines(sys.stdin.buffer)
    if options.columns is not None:
        texts = _every_row(_rows(task, options))
    if options.npy:
        _write_vectors(task, texts, options)
        return
    answers = _PRINTERS.get(task.kind, _hypotheses)(task, options)
    where = ("input " if options.columns else "") if options.texts else "standard input, line "
    read: Counter[str] = Counter()
    for chunk in _chunks(texts, 1 if not options.texts and sys.stdin.isatty() else _CHUNK):
        inputs = read_inputs(task.kind, chunk)
        for line in _until_mistake(answers, inputs, read["texts"], where):
            print(line)
        sys.stdout.flush()
        read += _counted(task, inputs)
    _say_what_was_read(read)


def _until_mistake(
    answers: _Answers, inputs: Sequence[Any], before: int, where: str
) -> Iterator[str]:
    """Yields the answers to inputs, and those before a wrong input before its mistake is raised.

    Args:
        answers: Answers inputs after a number of others.
        inputs: The inputs.
        before: How many there were before.
        where: What the number of a wrong input comes after; "" for inputs that are arguments, where
            nothing is answered if one is wrong.
    """
    try:
        lines = list(answers(inputs, before))
    except UserError as error:
        if not where:
            raise
        if len(inputs) == 1:
            raise UserError(f"{where}{before + 1}: {error}") from None
        half = len(inputs) // 2
        yield from _until_mistake(answers, inputs[:half], before, where)
        yield from _until_mistake(answers, inputs[half:], before + half, where)
        return
    yield from lines


def _counted(task: Any, inputs: Sequence[Any]) -> Counter[str]:
    """Counts inputs, those that are read in part, and those without anything to read."""
    from keras_attn.data.reading.lines import is_empty
    from keras_attn.tokenizers.text_pairs import BETWEEN

    texts = inputs if task.kind != "causal_lm" else ()  # which goes on from nothing, too
    are_pairs = task.kind in ("rank", "question_answering") or getattr(task, "pairs", False)
    blank = sum(
        any(is_empty(part) for part in (text.split(BETWEEN) if are_pairs else (text,)))
        for text in texts
        if isinstance(text, str)
    )
    return Counter(texts=len(inputs), truncated=task.count_truncated(inputs), blank=blank)


def _say_what_was_read(read: Counter[str]) -> None:
    for name, what in (
        ("truncated", "the task reads in part"),
        ("blank", "have an answer that says nothing"),
    ):
        if read[name]:
            line = f"{name}: {read[name]:,} of {read['texts']:,} texts, which {what}"
            print(line, file=sys.stderr)


def _refuse_files(task: Any, texts: Sequence[str]) -> None:
    """Raises for names of files in place of texts."""
    from keras_attn.data.reading.tables import form_of
    from keras_attn.training.task_runs import TASK_RUNS

    role, *_ = TASK_RUNS[task.kind].columns
    if role == "file":
        return  # of images
    for text in texts:
        is_name = not set(text) & set(string.whitespace) and "." in text
        require(
            not is_name or not (form_of(text) or Path(text).is_file()),
            f"TEXT is the name of a file. To read a table, name its column: --columns {role}=NAME. "
            "A file of one text a line, and a text that is such a name, are read from standard "
            "input.",
            text=text,
        )


def _every_row(rows: Iterator[str]) -> Iterator[str]:
    """Yields rows, and does not advise to leave out malformed ones: each row has an answer."""
    from keras_attn.data.reading.lines import SKIP_HINT

    try:
        yield from rows
    except UserError as error:
        advice = "No row can be left out here, since each has its answer: mend it."
        raise UserError(str(error).replace(SKIP_HINT, advice)) from None


def _rows(task: Any, options: argparse.Namespace) -> Iterator[str]:
    """Yields the texts of a column of tables."""
    from keras_attn.data.files import joined_names
    from keras_attn.data.reading.paths import expanded
    from keras_attn.data.reading.rows import Form, Reading, Row
    from keras_attn.data.text_pairs import tab_in_pair
    from keras_attn.tokenizers.text_pairs import BETWEEN
    from keras_attn.training.task_runs import TASK_RUNS

    require(bool(options.texts), "With --columns, TEXT is the name of a table.", tables=0)
    files = expanded(options.texts)
    reading = Reading(joined_names(files), Form(options.columns, options.encoding))
    role, *others = TASK_RUNS[task.kind].columns
    if task.kind == "rank":
        rows = reading.tables(files, [role, *others], mistake=tab_in_pair)
        grouped: dict[str, list[str]] = {}
        for query, passage in reading.good(rows):
            grouped.setdefault(query, []).append(passage)
        rows = (Row((query, *passages)) for query, passages in grouped.items())
    elif task.kind == "question_answering":
        rows = reading.tables(files, [role, "context"])
        for fields in reading.good(rows):
            yield BETWEEN.join(text.replace(BETWEEN, " ") for text in fields)
        return
    elif task.kind in ("classification", "regression") and "other" in options.columns:
        require(task.pairs, "The task reads one text: there is no column `other`.", task=task.kind)
        rows = reading.tables(files, [role, "other"], mistake=tab_in_pair)
    else:
        rows = reading.tables(files, [role])
    for texts in reading.good(rows):
        yield BETWEEN.join(texts)
    for note in reading.notes:
        print(note, file=sys.stderr)


def _print_forecasts(task: Any, options: argparse.Namespace) -> None:
    """Prints the forecasts of the series of tables as CSV."""
    plain = {"beams": None, "n_best": 1, "scores": False, "npy": None}
    received = {name: getattr(options, name) for name in plain}
    require(
        received == plain,
        "--beams, --n-best, --scores and --npy do not apply to forecasts.",
        **received,
    )
    require(bool(options.texts), "A forecaster needs the name of a table of series.", tables=0)
    print(task.forecast(options.texts, options.columns, options.encoding).csv(), end="")


def _hypotheses(task, options) -> _Answers:
    scores = _probability if task.kind in _CLASSIFIERS else _scores

    def lines(texts, before):
        predicted = _predicted(task, texts, before, options)
        for number, hypotheses in enumerate(predicted, before + 1):
            for hypothesis in hypotheses:
                columns = [str(number)] if options.n_best > 1 or (options.samples or 1) > 1 else []
                columns.append(hypothesis.text)
                columns += scores(hypothesis) if options.scores else []
                yield "\t".join(columns)

    return lines


def _refuse(options, what: str, **plain: Any) -> None:
    """Raises unless options that a task does not have are as they are by default."""
    received = {name: getattr(options, name) for name in plain}
    *first, last = (f"--{name.replace('_', '-')}" for name in plain)
    named = f"{', '.join(first)} and {last}"
    require(received == plain, f"{named} do not apply to {what}.", **received)


def _vectors(task, options) -> _Answers:
    _refuse(options, "embeddings", beams=None, n_best=1, scores=False)

    def lines(texts, before):
        for vector in task.predict(texts, prompt=options.prompt):
            # The shortest decimals that identify float32 numbers.
            yield json.dumps([float(str(number)) for number in vector])

    return lines


def _numbers(task, options) -> _Answers:
    _refuse(options, "numbers", beams=None, n_best=1, scores=False)

    def lines(texts, before):
        for row in task.predict(texts).reshape(len(texts), -1):
            yield "\t".join(f"{number:g}" for number in row)

    return lines


def _rankings(task, options) -> _Answers:
    _refuse(options, "rankings", beams=None, n_best=1)

    def lines(texts, before):
        for number, ranked in enumerate(task.predict(texts), before + 1):
            for one in ranked:
                yield f"{number}\t{one.score:.4f}\t{one.passage}"

    return lines


def _answers(task, options) -> _Answers:
    _refuse(options, "answers", beams=None, n_best=1)

    def lines(texts, before):
        for answer in task.answers(texts):
            rest = [f"{answer.score:.4f}", f"{answer.start}", f"{answer.end}"]
            yield "\t".join([answer.text, *(rest if options.scores else [])])

    return lines


def _label_sets(task, options) -> _Answers:
    if options.n_best > 1:
        return _hypotheses(task, options)  # the most probable labels, predicted or not
    _refuse(options, "sets of labels", beams=None, sample=False)

    def lines(texts, before):
        for found in task.label_sets(texts):
            columns = [json.dumps(found.labels, ensure_ascii=False)]
            if options.scores:
                rounded = {label: round(value, 4) for label, value in found.probabilities.items()}
                columns.append(json.dumps(rounded, ensure_ascii=False))
            yield "\t".join(columns)

    return lines


_PRINTERS = {
    "embedding": _vectors,
    "multi_label_classification": _label_sets,
    "question_answering": _answers,
    "rank": _rankings,
    "regression": _numbers,
}
"""Functions that print answers other than hypotheses, by task."""


def _write_vectors(task: Any, texts: Iterable[str], options: argparse.Namespace) -> None:
    """Writes the vectors of texts to a file, with progress."""
    import numpy as np

    require(task.kind == "embedding", "--npy is for embedding models.", task=task.kind)
    _vectors(task, options)  # raises for options of other tasks
    texts = list(texts)
    with progress(len(texts), "embedding") as done:
        vectors = task.predict(texts, done, options.prompt)
    _say_what_was_read(_counted(task, texts))
    with replaced_file(options.npy) as temporary, temporary.open("wb") as file:
        np.save(file, vectors)
    print(f"{options.npy}: {vectors.shape[0]:,} vectors of {vectors.shape[1]:,} numbers")


def _check_together(options: argparse.Namespace) -> None:
    """Raises unless the options given belong together."""
    drawing = {name: getattr(options, name) for name in ("samples", "seed", *_SAMPLING)}
    searching = {
        "beams": options.beams,
        "n_best": None if options.n_best == 1 else options.n_best,
        "prefix": options.prefix,
    }
    rule = "cannot be used with --sample." if options.sample else "needs --sample."
    for name, value in (searching if options.sample else drawing).items():
        if value is not None:
            raise UserError(f"--{name.replace('_', '-')} {rule} Received: {value}")


def _predicted(task, texts, done, options):
    """The hypotheses of some texts after `done` others."""
    if options.sample:
        settings = {name: getattr(options, name) for name in _SAMPLING}
        given = {name: value for name, value in settings.items() if value is not None}
        samples = 1 if options.samples is None else options.samples
        return task.sample(texts, samples, options.seed or 0, done, **given)
    if options.prefix is None:
        return task.predict_n_best(texts, options.n_best, options.beams)
    prefixes = [options.prefix] * len(texts)
    return task.predict_n_best(texts, options.n_best, options.beams, prefixes=prefixes)


def _scores(hypothesis: Any) -> list[str]:
    return [f"{hypothesis.score:.4f}", f"{hypothesis.log_probability:.4f}"]


def _probability(hypothesis: Any) -> list[str]:
    return [f"{math.exp(hypothesis.log_probability):.4f}"]


def _lines(stream: BinaryIO) -> Iterator[str]:
    most = LINE_BYTES.value
    for number, line in enumerate(iter(lambda: stream.readline(most + 1), b""), 1):
        LINE_BYTES.check(len(line.rstrip(b"\r\n")), f"standard input, line {number}")
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"standard input, line {number}, byte {error.start + 1}: the text must be UTF-8. "
                "`iconv -f NAME -t UTF-8` converts others, such as cp1252."
            ) from error


def _chunks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yields texts in lists of `size`; texts before a mistake are yielded before it is raised."""
    texts = iter(texts)
    mistake = None
    while mistake is None:
        chunk: list[str] = []
        try:
            chunk.extend(itertools.islice(texts, size))
        except UserError as error:
            mistake = error
        if chunk:
            yield chunk
        elif mistake is None:
            return
    raise mistake

"""Predict a text, labels or a vector for each text or image, with a trained or exported model."""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from keras_attn.cli import decoding_options
from keras_attn.cli.terminal import quiet_start
from keras_attn.limits import LINE_BYTES
from keras_attn.validation import UserError, require, require_positive

EPILOG = f"""\
Each TEXT, or each line of standard input, gives one line; put `--` before a TEXT that begins with
a dash. --n-best and --samples give N lines for each text, with the text's number before a tab;
--scores adds, after tabs, the score (log-probability over length penalty) and the log-probability.
A model of embeddings gives each text's vector as a JSON list. A masked language model fills each
[MASK] of a text with one token. A tagger gives a tag for each word of a text, with spaces between
them; its score is the log-probability of all of them together. For a classifier of images each TEXT
or line is the name of a PNG file.

Without --sample the most probable texts found are printed. With it texts are drawn at random, word
by word, as the model's probabilities say, from part of them with the options below it:
  --temperature 0.7   bets more on what is probable; above 1 on what is not
  --top-k 40          never draws what is not among the 40 most probable
  --top-p 0.9         draws from as few as have 90% of the probability together
  --repetition-penalty 1.2   takes from what has occurred, in a language model's prompt as well
They count in this order: penalty, temperature, top-k, top-p. What is left out is the model's own
(`keras-attn train --set decoding.temperature=0.7`). The same --seed draws the same texts again.

{decoding_options.HELP}
examples:
  keras-attn predict runs/g2p hello world
  keras-attn predict exported/en-de < test.en > test.hyp
  keras-attn predict runs/g2p --beams 5 --n-best 3 --scores colonel
  keras-attn predict runs/en-de --prefix "Ein Hund" "A dog runs."
  keras-attn predict runs/en-de --set decoding.no_repeat_ngram=3 < test.en
  keras-attn predict runs/names --sample --samples 5 --top-p 0.9 --seed 7 Mar
  keras-attn predict runs/texts "A man is [MASK] a guitar."
  keras-attn predict runs/tags "Anna lives in Rome ."
  keras-attn predict runs/digits --n-best 3 --scores scan.png
"""

_CHUNK = 1024  # lines read before they are predicted
_SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `predict`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run, a task folder or a SavedModel")
    add("texts", nargs="*", metavar="TEXT", help="default: the lines of standard input")
    add("--n-best", type=int, default=1, metavar="N", help="hypotheses for each text (default: 1)")
    add("--scores", action="store_true", help="print scores and log-probabilities too")
    add("--prefix", metavar="TEXT", help="what every predicted text begins with, in whole words")
    add("--sample", action="store_true", help="draw at random instead of searching")
    decoding_options.add_arguments(parser)
    add = parser.add_argument_group("with --sample").add_argument
    add("--samples", type=int, metavar="N", help="texts to draw for each text (default: 1)")
    add("--seed", type=int, metavar="S", help="of the random numbers (default: 0)")
    add("--temperature", type=float, metavar="T", help="below 1 sharper, above 1 flatter")
    add("--top-k", type=int, metavar="K", help="draw from the K most probable tokens, 0 for all")
    add("--top-p", type=float, metavar="P", help="draw from the tokens that make up P, 1 for all")
    add("--repetition-penalty", type=float, metavar="R", help="above 1 against repetition")


def run(options: argparse.Namespace) -> None:
    """Predicts and prints."""
    require_positive(n_best=options.n_best)
    _check_together(options)
    with quiet_start():
        from keras_attn.tasks import open_task, read_inputs

    task = decoding_options.decoding_as_told(open_task(options.model), options.set)
    require(
        hasattr(task, "sample") or not (options.sample or options.prefix is not None),
        "Only what generates texts takes --sample and --prefix.",
        task=task.kind,
    )
    texts = options.texts or _lines(sys.stdin.buffer)
    answers = _vectors(task, options) if task.kind == "embed" else _hypotheses(task, options)
    for chunk in _chunks(texts, 1 if not options.texts and sys.stdin.isatty() else _CHUNK):
        for line in answers(read_inputs(task.kind, chunk)):
            print(line)
        sys.stdout.flush()


def _hypotheses(task, options) -> Callable[[list[str] | list[bytes]], Iterator[str]]:
    done = 0

    def lines(texts):
        nonlocal done
        first, done = done, done + len(texts)
        for number, hypotheses in enumerate(_predicted(task, texts, first, options), first + 1):
            for hypothesis in hypotheses:
                yield _line(number, hypothesis, options)

    return lines


def _vectors(task, options) -> Callable[[list[str] | list[bytes]], Iterator[str]]:
    received = {"beams": options.beams, "n_best": options.n_best, "scores": options.scores}
    plain = {"beams": None, "n_best": 1, "scores": False}
    require(received == plain, "A vector has no beams, alternatives or scores.", **received)

    def lines(texts):
        for vector in task.predict(texts):
            # The shortest numbers that float32 tells apart.
            yield json.dumps([float(str(number)) for number in vector])

    return lines


def _check_together(options: argparse.Namespace) -> None:
    """Raises unless the options given belong together."""
    drawing = {name: getattr(options, name) for name in ("samples", "seed", *_SAMPLING)}
    searching = {
        "beams": options.beams,
        "n_best": None if options.n_best == 1 else options.n_best,
        "prefix": options.prefix,
    }
    wrong, rule = (
        (searching, "cannot be given with --sample, which makes no search.")
        if options.sample
        else (drawing, "needs --sample.")
    )
    for name, value in wrong.items():
        if value is not None:
            raise UserError(f"--{name.replace('_', '-')} {rule} Received: {value}")


def _predicted(task, texts, done, options):
    """The hypotheses for each of some texts, of which `done` came before."""
    if options.sample:
        settings = {name: getattr(options, name) for name in _SAMPLING}
        given = {name: value for name, value in settings.items() if value is not None}
        samples = 1 if options.samples is None else options.samples
        return task.sample(texts, samples, options.seed or 0, done, **given)
    if options.prefix is None:
        return task.predict_n_best(texts, options.n_best, options.beams)
    prefixes = [options.prefix] * len(texts)
    return task.predict_n_best(texts, options.n_best, options.beams, prefixes=prefixes)


def _line(number, hypothesis, options) -> str:
    columns = [str(number)] if options.n_best > 1 or (options.samples or 1) > 1 else []
    columns.append(hypothesis.text)
    if options.scores:
        columns += [f"{hypothesis.score:.4f}", f"{hypothesis.log_probability:.4f}"]
    return "\t".join(columns)


def _lines(stream: BinaryIO) -> Iterator[str]:
    most = LINE_BYTES.value
    for number, line in enumerate(iter(lambda: stream.readline(most + 1), b""), 1):
        LINE_BYTES.check(len(line.rstrip(b"\r\n")), f"standard input, line {number}")
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"standard input, line {number}, byte {error.start + 1}: the text must be UTF-8."
            ) from error


def _chunks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Texts in lists of `size`; those read before a mistake come before it is raised."""
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

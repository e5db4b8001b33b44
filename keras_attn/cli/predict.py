"""Predict a text, a label or a vector for each text, with a trained or exported model."""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator

from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError, require, require_positive

EPILOG = """\
Each TEXT, or each line of standard input, gives one line; put `--` before a TEXT that begins with
a dash. --n-best gives N lines for each text, with the text's number before a tab; --scores adds,
after tabs, the score (log-probability over length penalty) and the log-probability. A model of
embeddings gives each text's vector as a JSON list.

examples:
  keras-attn predict runs/g2p hello world
  keras-attn predict exported/en-de < test.en > test.hyp
  keras-attn predict runs/g2p --beam 5 --n-best 3 --scores colonel
"""

_CHUNK = 1024  # lines read before they are predicted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `predict`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run, a task folder or a SavedModel")
    add("texts", nargs="*", metavar="TEXT", help="default: the lines of standard input")
    add("--beam", type=int, metavar="N", help="width of the beam search (default: the model's)")
    add("--n-best", type=int, default=1, metavar="N", help="hypotheses for each text (default: 1)")
    add("--scores", action="store_true", help="print scores and log-probabilities too")


def run(options: argparse.Namespace) -> None:
    """Predicts and prints."""
    require_positive(n_best=options.n_best)
    with quiet_start():
        from keras_attn.tasks import open_task

    task = open_task(options.model)
    texts = options.texts or _lines(sys.stdin.buffer)
    answers = _vectors(task, options) if task.kind == "embed" else _hypotheses(task, options)
    for chunk in _chunks(texts, 1 if not options.texts and sys.stdin.isatty() else _CHUNK):
        for line in answers(chunk):
            print(line)
        sys.stdout.flush()


def _hypotheses(task, options) -> Callable[[list[str]], Iterator[str]]:
    numbers = itertools.count(1)

    def lines(texts):
        for hypotheses in task.predict_n_best(texts, options.n_best, options.beam):
            number = next(numbers)
            for hypothesis in hypotheses:
                yield _line(number, hypothesis, options)

    return lines


def _vectors(task, options) -> Callable[[list[str]], Iterator[str]]:
    received = {"beam": options.beam, "n_best": options.n_best, "scores": options.scores}
    plain = {"beam": None, "n_best": 1, "scores": False}
    require(received == plain, "A vector has no beams, alternatives or scores.", **received)

    def lines(texts):
        for vector in task.predict(texts):
            # The shortest numbers that float32 tells apart.
            yield json.dumps([float(str(number)) for number in vector])

    return lines


def _line(number, hypothesis, options) -> str:
    columns = [str(number)] if options.n_best > 1 else []
    columns.append(hypothesis.text)
    if options.scores:
        columns += [f"{hypothesis.score:.4f}", f"{hypothesis.log_probability:.4f}"]
    return "\t".join(columns)


def _lines(stream: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(stream, 1):
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
        chunk = []
        try:
            chunk.extend(itertools.islice(texts, size))
        except UserError as error:
            mistake = error
        if chunk:
            yield chunk
        elif mistake is None:
            return
    raise mistake

"""Base class of runs on texts without targets, one per line."""

import abc
import itertools
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.tasks.measuring.token_losses import TokenLosses
from keras_attn.training.reporting.errors import Judged
from keras_attn.training.run_texts import hold_out_lines, read_lines
from keras_attn.training.task_runs.base import TaskRun
from keras_attn.validation import require, require_one_of

_INPUTS = 8
_LOOKED_AT = 50  # texts; some of them have no input
_MOST_WORDS = (24, 12, 6, 3)


class LinesRun(TaskRun):
    """Training on texts, one a line; those that are too long are cut into pieces."""

    roles = ("text",)
    items = "lines"
    takes_metrics = False

    measured_tasks: ClassVar[tuple[type, ...]]
    """Classes of the tasks that can be measured."""

    measures: ClassVar[tuple[str, ...]] = ("perplexity", "accuracy")
    """Attributes of `TokenLosses` that the task is measured by."""

    @abc.abstractmethod
    def losses(self, task: Any, texts: list[str]) -> TokenLosses:
        """Measures a task on each of some texts."""

    hold_out = staticmethod(hold_out_lines)

    def held_out_inputs(self, task, texts):
        lines = dict.fromkeys(texts.texts[:_LOOKED_AT])
        found = (self._input_of(task, line) for line in lines)
        return list(itertools.islice(dict.fromkeys(filter(None, found)), _INPUTS))

    def _input_of(self, task: Any, line: str) -> str | None:
        """The longest input that is made of the first words of a line, and that a task reads."""
        for most in _MOST_WORDS:
            text = self.made_input(task, first_words(line, most))
            if text is not None and _is_read(task, text):
                return text
        return None

    def made_input(self, task: Any, text: str) -> str | None:
        """Makes an input of a task from a text; `None` if the text has too few words."""
        return text or None

    def read_test(self, paths, data):
        return read_lines(paths, data)

    def check_options(self, beams, perplexity):
        require(beams is None, f"The task {self.name!r} is measured without beams.", beams=beams)

    def answers(self, task, texts, beams=None, progress=None):
        require(
            isinstance(task, self.measured_tasks),
            f"The task {self.name!r} is measured with a run or a task folder.",
            task=task.kind,
        )
        losses = self.losses(task, texts.texts)
        if progress:
            progress(len(texts))
        return losses

    def scores(self, texts, answers, metrics):
        for name in metrics:
            require_one_of("metrics", name, self.measures)
        return {"items": len(texts)} | {name: getattr(answers, name) for name in self.measures}

    def judged(self, texts, answers):
        """Judges texts by their loss a token."""
        rows = zip(texts.texts, answers.expected, answers.predicted, strict=True)
        errors = answers.nll / np.maximum(answers.tokens, 1)
        return [Judged(*row, error) for row, error in zip(rows, errors.tolist(), strict=True)]


def words_of(text: str) -> Iterator[re.Match]:
    """The places of the words of a text."""
    return re.finditer(r"\S+", text)


def first_words(text: str, most: int) -> str:
    """Returns a text up to the end of one of its first words."""
    ends = [word.end() for word in itertools.islice(words_of(text), most)]
    return text[: ends[-1]].strip() if ends else ""


def _is_read(task: Any, text: str) -> bool:
    """Whether a text is not too long for a task."""
    try:
        task.input_ids(tf.constant([text]))
    except tf.errors.InvalidArgumentError:
        return False
    return True

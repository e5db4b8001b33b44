"""Measures answers to questions."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_attn.data.questions import Questions
from keras_attn.evaluation.answers import ANSWERS, answer_exact_match, answer_f1
from keras_attn.validation import require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.exported.question_answering import ExportedQuestionAnswering
    from keras_attn.tasks.question_answering import Answer, QuestionAnsweringTask


def measure_answers(
    task: "QuestionAnsweringTask | ExportedQuestionAnswering",
    questions: Questions,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    r"""Answers questions and compares the answers with the right ones.

    Args:
        task: A task that answers questions, or its export.
        questions: Questions with answers; rows of the same question and context are alternatives.
        metrics: Names in `keras_attn.evaluation.ANSWERS`.
        progress: Called with the number of questions done after each batch.

    Returns:
        Each metric's value by its name, from 0 to 100; and "items", the number of questions.

    Raises:
        UserError: A metric is unknown.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = TokenClassifier(Bert(9, **sizes), num_classes=2)
        >>> task = QuestionAnsweringTask(model, CharacterTokenizer("abc ?"), max_length=32)
        >>> questions = Questions(["a?\tb cab"], [("cab",)], starts=[2])
        >>> measure_answers(task, questions, ["exact_match", "f1"])
        {'items': 1, 'exact_match': ..., 'f1': ...}
    """
    return answer_scores(questions, answers_to(task, questions, progress), metrics)


def answers_to(
    task: "QuestionAnsweringTask | ExportedQuestionAnswering",
    questions: Questions,
    progress: Callable[[int], None] | None = None,
) -> "dict[str, Answer]":
    """Answers each different question."""
    sources = list(dict.fromkeys(questions.sources))
    return dict(zip(sources, task.answers(sources, progress), strict=True))


def references_of(questions: Questions) -> dict[str, tuple[str, ...]]:
    """The right answers of each different question."""
    found: dict[str, tuple[str, ...]] = {}
    for source, answers in zip(questions.sources, questions.targets, strict=True):
        found[source] = (*found.get(source, ()), *answers)
    return found


def answer_scores(
    questions: Questions, answers: "dict[str, Answer]", metrics: Sequence[str]
) -> dict[str, float]:
    """Compares answers with the right ones; see `measure_answers`."""
    for name in metrics:
        require_one_of("metric", name, ANSWERS)
    functions = dict(zip(ANSWERS, (answer_exact_match, answer_f1), strict=True))
    references = references_of(questions)
    values = {
        name: float(
            np.mean([functions[name](answers[one].text, references[one]) for one in answers])
        )
        for name in metrics
    }
    return {"items": len(references)} | values

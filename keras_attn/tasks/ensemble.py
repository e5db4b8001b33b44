"""Ensembles: tasks of several models whose predictions are averaged."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_attn.models import Ensemble
from keras_attn.tasks.base import Task
from keras_attn.tasks.causal_lm import CausalLMTask
from keras_attn.tasks.classification import ClassificationTask
from keras_attn.tasks.image_classification import ImageClassificationTask
from keras_attn.tasks.masked_lm import MaskedLMTask
from keras_attn.tasks.multi_label_classification import MultiLabelClassificationTask
from keras_attn.tasks.regression import RegressionTask
from keras_attn.tasks.seq2seq import Seq2SeqTask
from keras_attn.tasks.token_classification import TokenClassificationTask
from keras_attn.validation import require, require_one_of

_ACTIVATIONS = {
    **dict.fromkeys(
        (
            *(Seq2SeqTask.kind, CausalLMTask.kind, MaskedLMTask.kind),
            *(ClassificationTask.kind, TokenClassificationTask.kind),
            ImageClassificationTask.kind,
        ),
        "softmax",
    ),
    MultiLabelClassificationTask.kind: "sigmoid",
    RegressionTask.kind: "linear",
}
"""What makes averages of a model's outputs, by the kind of the task."""

_LENGTHS = ("max_source_length", "max_length")


def ensemble(tasks: Sequence[Task]) -> Task:
    """Makes one task of several, whose probabilities are averaged.

    Generated texts are searched with the average at each step, by the decoding settings of the
    first task. The result is a task as any other: it predicts, is evaluated, saved, exported, and
    can be a teacher.

    Args:
        tasks: Tasks of one kind, with the same tokenizers and labels: of texts to texts, language
            models, labels of texts, words or images, or numbers (standardized alike). Their models
            become parts of the ensemble.

    Returns:
        A task of the class of the first one. Its longest lengths are those that all members can
        read; thresholds are averaged.

    Raises:
        UserError: There is no task, they are of different kinds or one that has no average, or
            they read or answer in different ways.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> letters = CharacterTokenizer("abc")
        >>> models = [SequenceClassifier(TransformerEncoder(7, **sizes), 2) for _ in range(2)]
        >>> tasks = [ClassificationTask(model, letters, ["noun", "verb"]) for model in models]
        >>> mean = np.mean([task.probabilities(["cab"]) for task in tasks], axis=0)
        >>> bool(np.allclose(ensemble(tasks).probabilities(["cab"]), mean, atol=1e-6))
        True
    """
    tasks = list(tasks)
    require(bool(tasks), "An ensemble needs at least one task.", tasks=len(tasks))
    first = tasks[0]
    for task in tasks:
        require(
            task.kind == first.kind,
            "The tasks of an ensemble must be of one kind.",
            tasks=sorted({first.kind, task.kind}),
        )
        for role, tokenizer in first.tokenizers.items():
            other = task.tokenizers[role]
            require(
                other.digest == tokenizer.digest,
                "The tasks of an ensemble must have the same tokenizers.",
                tokenizer=role,
                tokens=[tokenizer.vocabulary_size, other.vocabulary_size],
            )
    require_one_of("task of an ensemble", first.kind, _ACTIVATIONS)
    settings = [task._settings() for task in tasks]
    together = {name: _together(name, [one[name] for one in settings]) for name in settings[0]}
    model = Ensemble([task.backbone for task in tasks], _ACTIVATIONS[first.kind])
    return first._from_parts(model, first.tokenizers, together)


def _of_decoding(values: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The first settings, with lengths that all models have room for."""
    return {**values[0], **{name: min(one[name] for one in values) for name in _LENGTHS}}


def _mean_thresholds(values: list[list[float]]) -> list[float]:
    return np.mean(values, axis=0).tolist()


_TOGETHER: dict[str, Callable[[list], Any]] = {
    "decoding": _of_decoding,
    "max_length": min,
    "truncate": any,
    "thresholds": _mean_thresholds,
}
"""What becomes of settings that may differ."""


def _together(name: str, values: list[Any]) -> Any:
    if name in _TOGETHER:
        return _TOGETHER[name](values)
    require(
        all(value == values[0] for value in values),
        f"The tasks of an ensemble must have the same `{name}`, in the same order.",
        **{name: values[:2]},
    )
    return values[0]

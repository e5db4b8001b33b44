"""Encoders of tasks that another task can start from."""

from typing import get_args

import keras

from keras_attn.tasks import (
    ClassificationTask,
    EmbeddingTask,
    MaskedLMTask,
    Task,
    TokenClassificationTask,
)

EncoderTask = ClassificationTask | EmbeddingTask | MaskedLMTask | TokenClassificationTask


def other_starts(own: type[Task]) -> tuple[type[Task], ...]:
    """Lists the classes of tasks whose encoder a task of another class can start from."""
    return tuple(kind for kind in get_args(EncoderTask) if kind is not own)


def encoder_of(task: EncoderTask) -> keras.Model:
    """The model from token ids to vectors in a task, without the task's head."""
    return task.backbone if isinstance(task, EmbeddingTask) else task.backbone.encoder

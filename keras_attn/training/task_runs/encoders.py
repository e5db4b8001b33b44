"""The encoder of a task, to go on with under another head."""

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
    """Gives the kinds of tasks from whose encoder a task of one of them can go on."""
    return tuple(kind for kind in get_args(EncoderTask) if kind is not own)


def encoder_of(task: EncoderTask) -> keras.Model:
    """Gives the model from token ids to vectors that is in a task, without the task's head."""
    return task.backbone if isinstance(task, EmbeddingTask) else task.backbone.encoder

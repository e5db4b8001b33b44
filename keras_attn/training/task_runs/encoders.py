"""Encoders of tasks that another task can start from."""

import keras

from keras_attn.tasks import (
    ClassificationTask,
    EmbeddingTask,
    MaskedLMTask,
    RegressionTask,
    Task,
    TokenClassificationTask,
)

ENCODER_TASKS = (
    *(ClassificationTask, RegressionTask, EmbeddingTask, MaskedLMTask),
    TokenClassificationTask,
)
"""Tasks whose encoder any of them can start from."""


def encoder_of(task: Task) -> keras.Model:
    """The model from token ids to vectors in a task, without the task's head."""
    return task.backbone if isinstance(task, EmbeddingTask) else task.backbone.encoder

"""Encoders of tasks that another task can start from."""

import keras

from keras_attn.models import PooledEncoder
from keras_attn.tasks import (
    ClassificationTask,
    EmbeddingTask,
    MaskedLMTask,
    QuestionAnsweringTask,
    RankTask,
    RegressionTask,
    Task,
    TokenClassificationTask,
)

ENCODER_TASKS = (
    *(ClassificationTask, RegressionTask, EmbeddingTask, MaskedLMTask),
    *(TokenClassificationTask, RankTask, QuestionAnsweringTask),
)
"""Tasks whose encoder any of them can start from."""


def encoder_of(task: Task) -> keras.Model:
    """The model from token ids to vectors in a task, without the task's head."""
    backbone = task.backbone
    is_whole = isinstance(task, EmbeddingTask) and not isinstance(backbone, PooledEncoder)
    return backbone if is_whole else backbone.encoder

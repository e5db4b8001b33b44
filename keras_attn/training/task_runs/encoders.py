"""Encoders of tasks that another task can start from."""

import keras

from keras_attn.layers.head_transform import HeadTransform
from keras_attn.models import Bert, MaskedLanguageModel, PooledEncoder
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


def transform_of(task: Task) -> HeadTransform | None:
    """What other heads on the encoder of a task begin with, too: in ModernBERT it has no biases."""
    model = task.backbone
    if not isinstance(model, MaskedLanguageModel):
        return next((one for one in model.layers if isinstance(one, HeadTransform)), None)
    if model.transform.use_bias:
        return None
    norm = {"epsilon": model.epsilon, "norm_bias": model.norm.beta is not None}
    transform = HeadTransform(model.activation, **norm)
    transform.build((None, None, model.hidden_dim))
    transform.dense.kernel.assign(model.transform.kernel)
    transform.norm.set_weights(model.norm.get_weights())
    return transform


def with_pooler(encoder: keras.Model) -> keras.Model:
    """A `Bert` with a new pooler where it has none; another encoder as it is."""
    if not isinstance(encoder, Bert) or encoder.pooler is not None:
        return encoder
    made = Bert.from_config(encoder.get_config() | {"pooler": True})
    new = {id(weight) for weight in made.pooler.weights}
    known = [weight for weight in made.weights if id(weight) not in new]
    for weight, given in zip(known, encoder.weights, strict=True):
        weight.assign(given)
    return made

"""The encoder of a task, to go on with under another head."""

import keras

from keras_attn.tasks import ClassificationTask, EmbeddingTask, MaskedLMTask


def encoder_of(task: ClassificationTask | EmbeddingTask | MaskedLMTask) -> keras.Model:
    """Gives the model from token ids to vectors that is in a task, without the task's head."""
    return task.backbone if isinstance(task, EmbeddingTask) else task.backbone.encoder

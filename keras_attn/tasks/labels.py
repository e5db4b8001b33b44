"""What all tasks share whose models give logits over labels."""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.tasks.base import Task
from keras_attn.tasks.texts import check_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require


class LabelTask(Task):
    """Gives inputs, or the words of them, one of several labels.

    Args:
        backbone: A model to logits (..., labels).
        tokenizers: The tokenizers by role.
        labels: What the columns of the logits stand for.

    Raises:
        UserError: There are fewer than two labels, two are equal, or they are not as many as the
            logits.
    """

    def __init__(
        self,
        backbone: keras.Model,
        tokenizers: Mapping[str, Tokenizer],
        labels: Sequence[str],
    ):
        super().__init__(backbone, tokenizers)
        labels = check_texts("labels", labels)
        require(len(labels) > 1, "There must be at least two labels.", labels=labels)
        require(len(set(labels)) == len(labels), "The labels must differ.", labels=labels)
        columns = backbone.output_shape[-1]
        require(
            columns == len(labels),
            "There must be as many labels as logits.",
            labels=len(labels),
            logits=columns,
        )
        self.labels = labels

    @staticmethod
    def loss(labels: tf.Tensor, logits: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the cross-entropy, as `token_cross_entropy` gives them.

        Args:
            labels: int32 (...,), counted from 1; 0 where there is no label, as at padding.
            logits: Floating, (..., labels).
            label_smoothing: Share of the probability spread over the labels.
        """
        return token_cross_entropy(labels, logits, label_smoothing, first_label=1)

    def resources(self) -> list:
        """Gives all that the serving functions use."""
        return [*self.tokenizers.values(), *self.backbone.variables]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {len(self.labels)} labels)"

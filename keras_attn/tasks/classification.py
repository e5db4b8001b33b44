"""Text classification."""

from collections.abc import Sequence
from typing import ClassVar

import keras

from keras_attn.tasks.labels import BaseClassificationTask
from keras_attn.tasks.text_inputs import TextInputs
from keras_attn.tokenizers import Tokenizer


class ClassificationTask(TextInputs, BaseClassificationTask):
    """Classifies texts.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to logits (batch, labels),
            such as `keras_attn.models.SequenceClassifier`.
        tokenizer: Tokenizer of the texts.
        labels: The labels, in the order of the logits.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        with_start: Whether to put the start token before a text, as BERT does.
        truncate: Whether to truncate longer texts; otherwise they are an error.

    Raises:
        UserError: The labels are fewer than two, repeated, or not as many as the logits, or the
            length exceeds the model's positions.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = SequenceClassifier(TransformerEncoder(9, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abdgo"), ["negative", "positive"])
        >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        >>> model.compile(keras.optimizers.Adam(0.01), loss)
        >>> inputs = {"token_ids": task.input_ids(["bad", "good"])}
        >>> losses = [model.train_on_batch(inputs, np.array([0, 1])) for update in range(100)]
        >>> task.predict(["good"])
        ['positive']
    """

    kind = "classification"
    _saved: ClassVar[tuple[str, ...]] = ("labels", "max_length", "with_start", "truncate")
    _saved_later: ClassVar = {"with_start": False, "truncate": False}

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int = 256,
        with_start: bool = False,
        truncate: bool = True,
    ):
        super().__init__(backbone, {"text": tokenizer}, labels)
        self._read_with(tokenizer, max_length, with_start, truncate)

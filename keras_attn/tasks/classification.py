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
        pairs: Whether an input is two texts, with a tab between them. The model reads both in one
            sequence, the end token after each.
        ends_between: Number of end tokens between the texts of a pair: 1 as in BERT, 2 as in
            RoBERTa.
        segments: Whether the model receives which text of a pair each token belongs to, as BERT
            does; otherwise all is segment 0.

    Raises:
        UserError: The labels are fewer than two, repeated, or not as many as the logits, the
            length exceeds the model's positions, or the format of pairs is not the model's.

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
    _saved: ClassVar[tuple[str, ...]] = (
        *("labels", "max_length", "with_start", "truncate"),
        *("pairs", "ends_between", "segments"),
    )
    _saved_later: ClassVar = {
        "with_start": False,
        "truncate": False,
        "pairs": False,
        "ends_between": 1,
        "segments": False,
    }

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int = 256,
        with_start: bool = False,
        truncate: bool = True,
        pairs: bool = False,
        ends_between: int = 1,
        segments: bool = False,
    ):
        super().__init__(backbone, {"text": tokenizer}, labels)
        how = (pairs, ends_between, segments)
        self._read_with(tokenizer, max_length, with_start, truncate, *how)

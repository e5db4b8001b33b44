"""Regression: numbers of texts."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.text_inputs import TextInputs
from keras_attn.tasks.texts import check_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require


class RegressionTask(TextInputs):
    """Predicts numbers of texts, such as a price, or of pairs of texts, such as their similarity.

    The model computes numbers in standard deviations from a mean, which the task converts.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to (batch, numbers), such as
            `keras_attn.models.SequenceClassifier` with as many classes.
        tokenizer: Tokenizer of the texts.
        names: What the numbers are called, in the order of the model's outputs.
        means: Mean of each number; 0 by default.
        deviations: Standard deviation of each number, above 0; 1 by default.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        with_start: Whether to put the start token before a text, as BERT does.
        truncate: Whether to truncate longer texts; otherwise they are an error.
        pairs: Whether an input is two texts, with a tab between them, such as those whose
            similarity is the number. The model reads both in one sequence, the end token after
            each.
        ends_between: Number of end tokens between the texts of a pair: 1 as in BERT, 2 as in
            RoBERTa.
        segments: Whether the model receives which text of a pair each token belongs to, as BERT
            does; otherwise all is segment 0.

    Raises:
        UserError: There is no name, one is repeated, the numbers of names, means, deviations and
            outputs differ, a deviation is not above 0, the length exceeds the model's positions, or
            the format of pairs is not the model's.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=1)
        >>> task = RegressionTask(model, CharacterTokenizer("abc"), ["price"], [40.0], [8.0])
        >>> model.compile(keras.optimizers.Adam(0.02), "mean_squared_error")
        >>> inputs = {"token_ids": task.input_ids(["a", "b"])}
        >>> losses = [model.train_on_batch(inputs, np.array([[-1], [1]])) for _ in range(300)]
        >>> bool(np.all(np.abs(task.predict(["a", "b"]) - [32, 48]) < 4))
        True
    """

    kind = "regression"
    loss_values = ("loss",)
    _saved: ClassVar[tuple[str, ...]] = (
        *("names", "means", "deviations", "max_length", "with_start", "truncate"),
        *("pairs", "ends_between", "segments"),
    )
    _saved_later: ClassVar = {"pairs": False, "ends_between": 1, "segments": False}

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        names: Sequence[str],
        means: Sequence[float] | None = None,
        deviations: Sequence[float] | None = None,
        max_length: int = 256,
        with_start: bool = False,
        truncate: bool = True,
        *,
        pairs: bool = False,
        ends_between: int = 1,
        segments: bool = False,
    ):
        super().__init__(backbone, {"text": tokenizer})
        names = check_texts("names", names)
        require(bool(names), "At least one number is needed.", names=names)
        require(len(set(names)) == len(names), "No name may be repeated.", names=names)
        self.names = names
        self.means = [0.0] * len(names) if means is None else list(map(float, means))
        self.deviations = [1.0] * len(names) if deviations is None else list(map(float, deviations))
        sizes = {
            "names": len(names),
            "means": len(self.means),
            "deviations": len(self.deviations),
            "outputs": backbone.output_shape[-1],
        }
        require(len(set(sizes.values())) == 1, "There must be as many of each.", **sizes)
        require(
            all(np.isfinite(self.means)) and all(0 < value < np.inf for value in self.deviations),
            "`means` must be numbers, and `deviations` numbers above 0.",
            means=self.means,
            deviations=self.deviations,
        )
        how = (pairs, ends_between, segments)
        self._read_with(tokenizer, max_length, with_start, truncate, *how)

    def standardized(self, numbers: np.ndarray) -> np.ndarray:
        """Converts numbers (..., numbers) to those that the model computes, float32."""
        return ((np.asarray(numbers, float) - self.means) / self.deviations).astype(np.float32)

    def loss(self, labels: tf.Tensor, outputs: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of half the squared error of standardized numbers.

        That is the negative log-likelihood of a normal distribution, but for a constant.

        Args:
            labels: Floating (batch, numbers), standardized; NaN at padding.
            outputs: Floating (batch, numbers).
            label_smoothing: Must be 0.

        Returns:
            The loss twice, the number of numbers, and 0: none is right or wrong.
        """
        require(label_smoothing == 0, "Numbers are not smoothed.", label_smoothing=label_smoothing)
        outputs = tf.cast(outputs, tf.float64 if outputs.dtype == tf.float64 else tf.float32)
        labels = tf.cast(labels, outputs.dtype)
        is_real = tf.math.is_finite(labels)
        # Before the square, so that the gradient of padding is 0.
        errors = tf.where(is_real, labels, 0.0) - tf.where(is_real, outputs, 0.0)
        loss = tf.reduce_sum(tf.square(errors)) / 2
        count = tf.reduce_sum(tf.cast(is_real, outputs.dtype))
        return loss, loss, count, tf.zeros_like(loss)

    def predict(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Predicts the numbers of texts.

        Args:
            inputs: The texts.
            progress: Called with the number of texts done after each batch.

        Returns:
            float32 (inputs,), or (inputs, numbers) if the task has several numbers.

        Raises:
            UserError: An input is invalid.
        """
        rows = self._computed(inputs, progress)
        return rows[:, 0] if len(self.names) == 1 else rows

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        del n_best  # a text has one answer
        answers = {"serving_default": lambda numbers: {"numbers": numbers}}
        return self._signatures(answers, "numbers", jit)

    def _activated(self, outputs):
        deviations, means = (tf.constant(x, tf.float32) for x in (self.deviations, self.means))
        return outputs * deviations + means

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {', '.join(self.names)})"

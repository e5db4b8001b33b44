"""Measures models by the losses of their labels, token by token."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import Examples, plan_epoch
from keras_attn.ops.cross_entropy import counts, losses_per_label
from keras_attn.tokenizers import Tokenizer

_MEASURED_TOKENS = 4096


@dataclass(frozen=True)
class TokenLosses:
    """Losses of the labels of texts, one entry a text.

    Attributes:
        nll: Sum of the negative log-likelihood of a text's labels, (texts,).
        tokens: Number of its labels, (texts,).
        correct: Number of those that are the most probable ones, (texts,).
        expected: Its labels as text; empty strings if they were not asked for.
        predicted: The most probable ones as text.
    """

    nll: np.ndarray
    tokens: np.ndarray
    correct: np.ndarray
    expected: list[str]
    predicted: list[str]

    @property
    def perplexity(self) -> float:
        """Perplexity of all labels."""
        return math.exp(min(self.nll.sum() / max(self.tokens.sum(), 1), 700))

    @property
    def accuracy(self) -> float:
        """Percentage of the labels that are the most probable ones."""
        return 100 * float(self.correct.sum() / max(self.tokens.sum(), 1))


def token_losses(
    model: keras.Model, examples: Examples, texts: int, tokenizer: Tokenizer | None = None
) -> TokenLosses:
    """Measures a model on the labels of each text.

    Args:
        model: A model from the inputs of the examples to logits.
        examples: Tokenized examples, one or more of each text; label 0 is ignored.
        texts: Number of the texts.
        tokenizer: Tokenizer of the labels, to write them as text.
    """
    sums = np.zeros((texts, 3))
    words: list[list[list[str]]] = [[[] for _ in range(texts)] for _ in range(2)]
    for rows, labels, values, best in _label_losses(model, examples):
        numbers = examples.indices[rows]
        np.add.at(sums, numbers, values)
        if tokenizer is None:
            continue
        names = tokenizer.tokens_of(tf.constant(np.stack([labels, best]))).numpy()
        for row, number in enumerate(numbers):
            for side, tokens in zip(words, names[:, row], strict=True):
                real = tokens[labels[row] != 0]
                side[number] += [token.decode(errors="replace") for token in real]
    expected, predicted = ([" ".join(tokens) for tokens in side] for side in words)
    nll, labeled, correct = sums.T
    return TokenLosses(nll, labeled, correct, expected, predicted)


def token_scores(model: keras.Model, examples: Examples) -> dict[str, float]:
    """Measures a model on the labels of examples.

    Args:
        model: A model from the inputs of the examples to logits.
        examples: Tokenized examples; label 0 is ignored.

    Returns:
        The "perplexity" of the labels, and the "accuracy" of the most probable ones, in percent.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> token_scores(model, TextExamples.from_texts(["cab", "abba"], tokenizer))
        {'perplexity': ..., 'accuracy': ...}
    """
    losses = token_losses(model, examples, int(examples.indices.max()) + 1)
    return {"perplexity": losses.perplexity, "accuracy": losses.accuracy}


def _label_losses(
    model: keras.Model, examples: Examples
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yields rows of examples, their labels, the sums of each row, and the most probable ids."""

    def measured(inputs: Any, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        logits = model(inputs)
        _, nll, correct = losses_per_label(labels, logits)
        sums = [
            tf.reduce_sum(one, axis=1) for one in (nll, tf.cast(counts(labels), nll.dtype), correct)
        ]
        return tf.stack(sums, axis=1), tf.argmax(logits, axis=-1, output_type=tf.int32)

    graph = tf.function(measured, input_signature=examples.signature, autograph=False)
    for rows in plan_epoch(examples, max(_MEASURED_TOKENS, int(examples.lengths.max())), seed=None):
        inputs, labels = examples.assemble(rows)
        values, best = graph(inputs, labels)
        yield np.asarray(rows), labels, values.numpy(), best.numpy()

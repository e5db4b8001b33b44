"""Signatures of exported tasks that generate text."""

import abc
import itertools
from collections.abc import Mapping
from typing import ClassVar

import tensorflow as tf

from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.serving import IDS, TEXTS, ServingFunction, first_and_numbers
from keras_attn.tasks.texts import example_texts, real_ids
from keras_attn.tasks.token_view import TokenView
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_positive


class GeneratingSignatures(Task):
    """The part of a `GeneratingTask` that an export serves."""

    decoding: DecodingSettings

    input_role: ClassVar[str]
    """Role of the tokenizer of input texts."""

    output_role: ClassVar[str]
    """Role of the tokenizer of generated texts."""

    @property
    def input_tokenizer(self) -> Tokenizer:
        """Tokenizer of input texts."""
        return self.tokenizers[self.input_role]

    @property
    def output_tokenizer(self) -> Tokenizer:
        """Tokenizer of generated texts."""
        return self.tokenizers[self.output_role]

    @abc.abstractmethod
    def read_tokens(self, text: tf.Tensor, target: tf.Tensor) -> TokenView:
        """Tokenizes input and target texts, strings (batch,), and names their tokens."""

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`).

        Each signature of texts has a counterpart for token ids. Target ids end with the end id, as
        generated ids do; 0 is padding at any position.
        """
        check_n_best(n_best, self.decoding)
        ids_name = f"{self.input_role}_ids"

        def best(text):
            return first_of_each(self._generate_texts(text, self.decoding, 1, jit))

        def several(text):
            return self._generate_texts(text, self.decoding, n_best, jit)

        def score(text, target):
            return self._score_texts(text, target, jit)

        def read_ids(inputs):
            return self.real_ids(inputs[ids_name])

        def best_ids(**inputs):
            return first_of_each(self._generate_ids(read_ids(inputs), 1, jit))

        def several_ids(**inputs):
            return self._generate_ids(read_ids(inputs), n_best, jit)

        def score_ids(target_ids, **inputs):
            return self._score_ids(read_ids(inputs), real_ids(target_ids), jit)

        def example_ids(texts):
            return {ids_name: self.input_ids(tf.constant(texts))}

        def example_pairs(texts):
            return {"text": texts, "target": self._example_targets(texts)}

        def example_id_pairs(texts):
            targets = self.target_ids(tf.constant(self._example_targets(texts)))
            return example_ids(texts) | {"target_ids": targets}

        texts, ids = {"text": TEXTS}, {ids_name: IDS}
        longest = {ids_name: self.decoding.max_source_length}
        pairs = texts | {"target": TEXTS}
        return {
            "serving_default": ServingFunction(best, texts),
            "n_best": ServingFunction(several, texts, compared=first_and_numbers),
            "score": ServingFunction(score, pairs, example_pairs),
            "token_ids": ServingFunction(best_ids, ids, example_ids, longest=longest),
            "n_best_token_ids": ServingFunction(
                several_ids, ids, example_ids, longest=longest, compared=first_and_numbers
            ),
            "score_token_ids": ServingFunction(
                score_ids,
                ids | {"target_ids": IDS},
                example_id_pairs,
                longest=longest | {"target_ids": self.decoding.max_length},
            ),
            "attention": attention_function(self.backbone, self.read_tokens, pairs, example_pairs),
        }

    def example_texts(self) -> list[str]:
        """Returns a few texts of different lengths, made of the most frequent tokens."""
        return example_texts(self.input_tokenizer, self.decoding.max_source_length)

    def _example_targets(self, texts):
        # Invalid UTF-8 may be tokenized again as more tokens than it was generated as.
        targets, longest = self.predict(texts, beams=1), self.decoding.max_length
        lengths = self.output_tokenizer.tokenize(tf.constant(targets)).row_lengths().numpy()
        fitting = itertools.cycle(example_texts(self.output_tokenizer, longest))
        return [
            target if length < longest else next(fitting)
            for target, length in zip(targets, lengths, strict=True)
        ]

    def real_ids(self, input_ids: tf.Tensor) -> tf.Tensor:
        """Moves padding to the end of each row.

        Args:
            input_ids: int32 (batch, length), 0 at padding, at any position.

        Returns:
            int32 (batch, length).
        """
        return real_ids(input_ids)


def first_of_each(outputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the first hypothesis of each input text.

    Args:
        outputs: Tensors (batch, n_best, …) by name.

    Returns:
        Tensors (batch, …) by name.
    """
    return {name: values[:, 0] for name, values in outputs.items()}


def check_n_best(n_best: int, decoding: DecodingSettings) -> None:
    """Raises a `UserError` unless a beam search can return that many hypotheses."""
    require_positive(n_best=n_best)
    require(
        n_best <= decoding.beams,
        "`n_best` must not exceed `beams`.",
        n_best=n_best,
        beams=decoding.beams,
    )

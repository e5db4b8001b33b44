"""What tasks that generate text have in common: search, scoring, what they serve."""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from keras_attn.generation import Hypotheses, beam_search, greedy_search
from keras_attn.tasks.base import Task
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.hypothesis import (
    Hypothesis,
    best_text,
    found_hypotheses,
    perplexity_of,
)
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.text_ids import batches_by_length, example_texts
from keras_attn.tasks.texts import check_pairs, check_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_positive

_TEXTS = tf.TensorSpec([None], tf.string)
_IDS = tf.TensorSpec([None, None], tf.int32)


class GeneratingTask(Task):
    """Turns texts into texts, token by token.

    Args:
        backbone: A model with the step protocol.
        tokenizers: The tokenizers by role.
        decoding: How the task generates.

    Raises:
        UserError: A tokenizer does not pad with id 0, or has one id for start and end, as that of
            GPT-2's own vocabulary.
    """

    input_role: ClassVar[str]
    """Role of the tokenizer of what goes in."""

    input_name: ClassVar[str]
    """What a text that goes in is called in an error."""

    output_role: ClassVar[str]
    """Role of the tokenizer of what comes out."""

    def __init__(
        self,
        backbone: keras.Model,
        tokenizers: Mapping[str, Tokenizer],
        decoding: DecodingSettings | None = None,
    ):
        super().__init__(backbone, tokenizers)
        for tokenizer in tokenizers.values():
            require(
                tokenizer.pad_id == 0 and tokenizer.start_id != tokenizer.end_id,
                "A tokenizer must pad with id 0 and tell the start from the end.",
                pad_id=tokenizer.pad_id,
                start_id=tokenizer.start_id,
                end_id=tokenizer.end_id,
            )
        self.decoding = decoding or DecodingSettings()
        self._functions: dict = {}

    @property
    def input_tokenizer(self) -> Tokenizer:
        """Tokenizer of the texts that go in."""
        return self.tokenizers[self.input_role]

    @property
    def output_tokenizer(self) -> Tokenizer:
        """Tokenizer of the texts that come out."""
        return self.tokenizers[self.output_role]

    @abc.abstractmethod
    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Turns texts into the ids that generation begins from, 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text is longer than the task's maximum.
        """

    @abc.abstractmethod
    def _begin(self, input_ids: tf.Tensor, room: int | None, beams: int) -> tuple[Any, dict]:
        """The token or tokens that the search begins with, and the state."""

    @abc.abstractmethod
    def _texts_of(self, input_ids: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
        """Texts (batch, n_best) of the ids generated (batch, n_best, length)."""

    @abc.abstractmethod
    def _score_texts(self, texts: tf.Tensor, targets: tf.Tensor, jit: bool = False) -> dict:
        """`log_probability` (batch,) of each target and its `length` (batch,), the end included."""

    def _settings(self):
        return {"decoding": vars(self.decoding)}

    def predict(self, texts: Sequence[str], beams: int | None = None) -> list[str]:
        """Generates a text for each text.

        Args:
            texts: The sources.
            beams: Width of the beam search; the task's own by default, 1 is greedy search.

        Returns:
            The most probable texts found.

        Raises:
            UserError: A text is longer than the task's maximum, or no text at all.
        """
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1, beams)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text.

        Args:
            texts: The sources.
            n_best: Number of hypotheses for each, at most `beams`.
            beams: Width of the beam search; the task's own by default.
            progress: Called with the number of texts done after each batch.

        Returns:
            For each text its hypotheses, the best first; there are fewer than `n_best` where the
            model has no more.

        Raises:
            UserError: A text is longer than the task's maximum, or `n_best` exceeds `beams`.
        """
        decoding = self.decoding.replace(beams=beams)
        _check_n_best(n_best, decoding)
        texts = check_texts("texts", texts)
        generate = self._function(("generate", decoding, n_best), _TEXTS)
        results: list[list[Hypothesis]] = [[] for _ in texts]
        longest = self.decoding.max_source_length
        for positions in batches_by_length(self.input_tokenizer, texts, self.input_name, longest):
            outputs = generate(tf.constant([texts[position] for position in positions]))
            columns = (outputs[name].numpy() for name in ("text", "score", "log_probability"))
            for position, row in zip(positions, zip(*columns, strict=True), strict=True):
                results[position] = found_hypotheses(*row)
            if progress:
                progress(len(positions))
        return results

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Computes how probable given targets are.

        Args:
            sources: The texts that go in.
            targets: A text for each.

        Returns:
            For each pair the natural logarithm of the target's probability, its end token
            included.

        Raises:
            UserError: The numbers of texts differ, or a text is longer than the task's maximum.
        """
        return [result[0] for result in self._scores(sources, targets)]

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Perplexity of the targets for each token, end tokens included."""
        return perplexity_of(self._scores(sources, targets))

    def _scores(self, sources, targets) -> list[tuple[float, int]]:
        sources, targets = check_pairs(sources, targets)
        batches_by_length(self.output_tokenizer, targets, "target text", self.decoding.max_length)
        score = self._function(("score",), _TEXTS, _TEXTS)
        results: list[tuple[float, int]] = [(0.0, 0)] * len(sources)
        longest = self.decoding.max_source_length
        for positions in batches_by_length(self.input_tokenizer, sources, self.input_name, longest):
            outputs = score(
                tf.constant([sources[position] for position in positions]),
                tf.constant([targets[position] for position in positions]),
            )
            columns = (outputs[name].numpy() for name in ("log_probability", "length"))
            for position, row in zip(positions, zip(*columns, strict=True), strict=True):
                results[position] = (float(row[0]), int(row[1]))
        return results

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Gives the functions that an exported task serves (see `keras_attn.tasks.serving`)."""
        _check_n_best(n_best, self.decoding)

        def best(text):
            outputs = self._generate_texts(text, self.decoding, 1, jit)
            return {name: values[:, 0] for name, values in outputs.items()}

        def several(text):
            return self._generate_texts(text, self.decoding, n_best, jit)

        def score(text, target):
            return self._score_texts(text, target, jit)

        def token_ids(**inputs):
            (ids,) = inputs.values()
            found = self._search(jit)(ids, self.decoding, 1)
            return {"token_ids": found.token_ids[:, 0], "score": found.scores[:, 0]}

        ids_name = f"{self.input_role}_ids"
        return {
            "serving_default": ServingFunction(best, {"text": _TEXTS}),
            "n_best": ServingFunction(several, {"text": _TEXTS}),
            "score": ServingFunction(
                score,
                {"text": _TEXTS, "target": _TEXTS},
                lambda texts: {"text": texts, "target": self.predict(texts, beams=1)},
            ),
            "token_ids": ServingFunction(
                token_ids,
                {ids_name: _IDS},
                lambda texts: {ids_name: self.input_ids(tf.constant(texts))},
            ),
        }

    def example_texts(self) -> list[str]:
        """Gives a few texts of unequal lengths, made of the commonest tokens."""
        return example_texts(self.input_tokenizer, self.decoding.max_source_length)

    def resources(self) -> list:
        """Gives all that the serving functions use."""
        return [*self.tokenizers.values(), *self.backbone.variables]

    def _generate_texts(self, texts, decoding, n_best, jit=False) -> dict:
        input_ids = self.input_ids(texts)
        found = self._search(jit)(input_ids, decoding, n_best)
        return {
            "text": self._texts_of(input_ids, found.token_ids),
            "score": found.scores,
            "log_probability": found.log_probabilities,
        }

    def _search(self, jit=False) -> Callable[..., Hypotheses]:
        def search(input_ids, decoding, n_best):
            tokenizer = self.output_tokenizer
            # XLA needs the sizes of what a loop carries to be known.
            room = decoding.max_length if jit else None
            start_id, state = self._begin(input_ids, room, decoding.beams)
            settings = {
                "start_id": start_id,
                "end_id": tokenizer.end_id,
                "max_length": decoding.max_length,
                "min_length": decoding.min_length,
                "length_penalty": decoding.length_penalty,
                "forbidden_ids": (tokenizer.pad_id, tokenizer.start_id, tokenizer.unknown_id),
            }
            if decoding.beams == 1:
                return greedy_search(self.backbone.step, state, **settings)
            return beam_search(self.backbone.step, state, decoding.beams, n_best=n_best, **settings)

        # Strings cannot be compiled: XLA gets what lies between the tokenizers.
        return tf.function(search, jit_compile=True, autograph=False) if jit else search

    def _function(self, key: tuple, *specs: tf.TensorSpec) -> Callable:
        if key not in self._functions:
            if key[0] == "generate":
                _, decoding, n_best = key
                function = functools.partial(self._generate_texts, decoding=decoding, n_best=n_best)
            else:
                function = self._score_texts
            self._functions[key] = tf.function(
                function, input_signature=list(specs), autograph=False
            )
        return self._functions[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {self.decoding})"


def _check_n_best(n_best: int, decoding: DecodingSettings) -> None:
    require_positive(n_best=n_best)
    require(
        n_best <= decoding.beams,
        "`n_best` must not exceed the beams.",
        n_best=n_best,
        beams=decoding.beams,
    )

"""Base class of tasks that generate text."""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import tensorflow as tf

from keras_attn.generation import GenerationResult, check_seed
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.generating_signatures import GeneratingSignatures, check_n_best
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import (
    COLUMNS,
    SCORE_COLUMNS,
    Hypothesis,
    best_text,
    found_hypotheses,
    in_batches,
    perplexity_of,
)
from keras_attn.tasks.serving import TEXTS, compiled
from keras_attn.tasks.texts import batches_by_length, check_pairs, check_texts, ids_with_end
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_positive


class GeneratingTask(GeneratingSignatures):
    """Generates texts from texts, token by token.

    Args:
        backbone: A model with the step protocol.
        tokenizers: The tokenizers by role.
        decoding: Settings of beam search and sampling.

    Raises:
        UserError: A tokenizer does not pad with id 0 or uses 0 as its end id, or a coverage penalty
            is set and the model does not report coverage.

    Examples:
        >>> task = Task.load("saved_models/g2p_en").with_decoding(beams=2)
        >>> isinstance(task, GeneratingTask)
        True
        >>> [hypothesis.text for hypothesis in task.predict_n_best(["read"], n_best=2)[0]]
        ['R IY D', 'R EH D']
    """

    input_name: ClassVar[str]
    """Name of an input text in error messages."""

    continues: ClassVar[bool] = False
    """Whether generated texts continue the input texts."""

    _saved: ClassVar[tuple[str, ...]] = ("decoding",)

    def __init__(
        self,
        backbone: keras.Model,
        tokenizers: Mapping[str, Tokenizer],
        decoding: DecodingSettings | None = None,
    ):
        super().__init__(backbone, tokenizers)
        for tokenizer in tokenizers.values():
            require(
                tokenizer.pad_id == 0 and tokenizer.end_id != 0,
                "A tokenizer must pad with id 0 and have another end id.",
                pad_id=tokenizer.pad_id,
                end_id=tokenizer.end_id,
            )
        self.decoding = decoding or DecodingSettings()
        self._check_coverage(self.decoding)
        self._functions: dict = {}

    def _check_coverage(self, decoding: DecodingSettings) -> None:
        require(
            not decoding.coverage_penalty or getattr(self.backbone, "supports_coverage", False),
            "`coverage_penalty` needs a recurrent model with additive or Luong attention.",
            coverage_penalty=decoding.coverage_penalty,
            model=type(self.backbone).__name__,
        )

    @abc.abstractmethod
    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes input texts, with 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length.
        """

    def target_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes target texts, with an end token after each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length.
        """
        longest = self.decoding.max_length
        return ids_with_end(self.output_tokenizer, texts, longest, "target text")

    @abc.abstractmethod
    def _begin(
        self, input_ids: tf.Tensor, room: int | None, beams: int, coverage: bool = False
    ) -> tuple[Any, dict]:
        """Returns the first token or tokens and the state, optionally with coverage."""

    @abc.abstractmethod
    def _texts_of(self, input_ids: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
        """Returns the texts (batch, n_best) of generated ids (batch, n_best, length)."""

    @abc.abstractmethod
    def _score_ids(self, input_ids: tf.Tensor, target_ids: tf.Tensor, jit: bool = False) -> dict:
        """Returns `log_probability` and `length` of each target, both (batch,)."""

    @property
    def _lengths(self) -> dict[str, int]:
        """The maximum lengths of texts, by setting."""
        decoding = self.decoding
        return {"max_source_length": decoding.max_source_length, "max_length": decoding.max_length}

    def _settings(self):
        return super()._settings() | {"decoding": vars(self.decoding)}

    @classmethod
    def _from_parts(cls, backbone, tokenizers, settings):
        decoding = DecodingSettings.from_dict(settings["decoding"])
        return super()._from_parts(backbone, tokenizers, settings | {"decoding": decoding})

    def generate(
        self, texts: Sequence[str], beams: int | None = None, **settings: Any
    ) -> list[str]:
        """Generates the most probable text for each input text; the same as `predict`."""
        return self.predict(texts, beams, **settings)

    def with_decoding(self, **changes: Any) -> Self:
        """Returns a task of the same model with other decoding settings.

        Args:
            **changes: Fields of `DecodingSettings` to change; `None` leaves a setting as it is.

        Returns:
            The task, which shares the model and tokenizers.

        Raises:
            UserError: A setting is unknown, out of range, or not supported by the model.
        """
        decoding = self.decoding.replace(**changes)
        settings = self._settings() | {"decoding": vars(decoding)}
        return self._from_parts(self.backbone, self.tokenizers, settings)

    def predict(self, texts: Sequence[str], beams: int | None = None, **settings: Any) -> list[str]:
        """Generates the most probable text for each input text.

        Args:
            texts: The input texts.
            beams: Width of the beam search; the task's own by default, 1 is greedy search.
            **settings: Other decoding settings that differ from the task's, such as `max_length`.

        Returns:
            The generated texts.

        Raises:
            UserError: An input is not text, or exceeds the task's maximum length; a setting is
                unknown, out of range or of sampling alone.
        """
        found = self.predict_n_best(texts, 1, beams, **settings)
        return [best_text(hypotheses) for hypotheses in found]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
        prefixes: Sequence[str] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text.

        Args:
            texts: The input texts.
            n_best: Number of hypotheses for each, at most `beams`.
            beams: Width of the beam search; the task's own by default.
            progress: Called with the number of texts done after each batch.
            prefixes: For each text the required beginning of its hypotheses, in whole words, since
                a prefix is tokenized on its own.
            **settings: Other decoding settings that differ from the task's, such as `max_length`.

        Returns:
            For each text its hypotheses, the best first; fewer than `n_best` if the model has no
            more.

        Raises:
            UserError: A text exceeds the task's maximum length, `n_best` exceeds `beams`, or a
                setting is unknown, out of range or of sampling alone.
        """
        decoding = self.decoding.for_search({"beams": beams, **settings})
        self._check_coverage(decoding)
        check_n_best(n_best, decoding)
        texts = check_texts("texts", texts)
        options = {"decoding": decoding, "n_best": n_best}
        if prefixes is None:
            generate = self._function(self._generate_texts, TEXTS, **options)
            return self._hypotheses(generate, progress, texts)
        texts, prefixes = self._check_prefixes(texts, prefixes)
        complete = self._function(self._complete_texts, TEXTS, TEXTS, **options)
        return self._hypotheses(complete, progress, texts, prefixes)

    def sample(
        self,
        texts: Sequence[str],
        samples: int = 1,
        seed: int = 0,
        first_number: int = 0,
        progress: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Samples texts for each input text.

        Samples are reproducible: those of a text depend on the seed, the text and its number, not
        on the other texts (see `keras_attn.generation.sample`).

        Args:
            texts: The input texts.
            samples: Number of samples per text.
            seed: Seed of the random numbers, an integer in [0, 2 ** 32).
            first_number: Number of the first text, if the texts continue an earlier call.
            progress: Called with the number of texts done after each batch.
            **settings: Decoding settings that differ from the task's, such as `temperature`,
                `top_k`, `top_p`, `repetition_penalty` and `max_length`.

        Returns:
            For each text its samples in the order in which they were drawn, with their
            log-probabilities under the model; samples of probability 0 are left out.

        Raises:
            UserError: A text exceeds the task's maximum length, or a setting is unknown, out of
                range or of beam search alone.
        """
        decoding = self.decoding.for_sampling(settings)
        require_positive(samples=samples)
        decoding.check_hypotheses("samples", samples)
        check_seed(seed)
        texts = check_texts("texts", texts)
        draw = self._function(
            self._sample_texts,
            TEXTS,
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([], tf.uint32),
            decoding=decoding,
            rules=decoding.sampling,
            samples=samples,
        )
        draw = functools.partial(draw, seed=tf.constant(seed, tf.uint32))
        numbers = range(first_number, first_number + len(texts))
        return self._hypotheses(draw, progress, texts, numbers)

    def _hypotheses(self, generate, progress, *inputs) -> list[list[Hypothesis]]:
        rows = self._in_batches(generate, COLUMNS, *inputs, progress=progress)
        return [found_hypotheses(*row) for row in rows]

    def _in_batches(self, function, names, texts, *others, progress=None) -> list[tuple]:
        """The named outputs of a function for texts, called for texts of similar lengths."""

        def predict(*batch):
            outputs = function(*map(tf.constant, batch))
            return [outputs[name].numpy() for name in names]

        longest = self.decoding.max_source_length
        batches = batches_by_length(self.input_tokenizer, texts, self.input_name, longest)
        return in_batches(batches, predict, texts, *others, progress=progress)

    def _check_prefixes(self, texts, prefixes) -> tuple[list[str], list[str]]:
        texts, prefixes = check_pairs(texts, prefixes)
        tokenizer, longest = self.output_tokenizer, self.decoding.max_length
        batches_by_length(tokenizer, prefixes, "prefix", longest)
        for prefix, ids in zip(prefixes, tokenizer.tokenize(prefixes).to_list(), strict=True):
            require(
                tokenizer.unknown_id not in ids,
                "A prefix must consist of tokens that the model can generate.",
                prefix=prefix,
            )
        return texts, prefixes

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Computes the log-probability of each target given its source.

        Args:
            sources: The input texts.
            targets: One text for each source.

        Returns:
            For each pair the natural logarithm of the target's probability, including its end
            token.

        Raises:
            UserError: The numbers of texts differ, or a text exceeds the task's maximum length.
        """
        return [result[0] for result in self._scores(sources, targets)]

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Computes the per-token perplexity of the targets, including end tokens."""
        return perplexity_of(self._scores(sources, targets))

    def _scores(self, sources, targets) -> list[tuple[float, int]]:
        sources, targets = check_pairs(sources, targets)
        batches_by_length(self.output_tokenizer, targets, "target text", self.decoding.max_length)
        score = self._function(self._score_texts, TEXTS, TEXTS)
        rows = self._in_batches(score, SCORE_COLUMNS, sources, targets)
        return [(float(log_probability), int(length)) for log_probability, length in rows]

    def _generate_texts(self, texts, decoding, n_best, jit=False) -> dict:
        input_ids = self.input_ids(texts)
        return self._outputs(input_ids, self._search(jit)(input_ids, decoding, n_best))

    def _generate_ids(self, input_ids, n_best, jit=False) -> dict:
        found = self._search(jit)(input_ids, self.decoding, n_best)
        return self._ids_outputs(found)

    def _score_texts(self, texts, targets, jit=False) -> dict:
        return self._score_ids(self.input_ids(texts), self.target_ids(targets), jit)

    def _complete_texts(self, texts, prefixes, decoding, n_best) -> dict:
        input_ids = self.input_ids(texts)
        prefix_ids = self.output_tokenizer.tokenize(prefixes).to_tensor()
        found = self._search()(input_ids, decoding, n_best, prefix_ids)
        return self._outputs(input_ids, found)

    def _sample_texts(self, texts, source_numbers, seed, decoding, rules, samples) -> dict:
        input_ids = self.input_ids(texts)
        draw = self._draw(decoding, rules, samples)
        return self._outputs(input_ids, draw(input_ids, seed, source_numbers))

    def _outputs(self, input_ids, found) -> dict:
        return {
            "text": self._texts_of(input_ids, found.token_ids),
            "score": found.scores,
            "log_probability": found.log_probabilities,
        }

    @staticmethod
    def _ids_outputs(found) -> dict:
        return {"token_ids": found.token_ids, "score": found.scores}

    def _search(self, jit=False) -> Callable[..., GenerationResult]:
        def search(input_ids, decoding, n_best, prefix_ids=None):
            # XLA needs the sizes of what a loop carries to be known.
            room = decoding.max_length if jit else None
            begin = self._begin(input_ids, room, decoding.beams, bool(decoding.coverage_penalty))
            step, tokenizer = self.backbone.step, self.output_tokenizer
            return decoding.search(step, begin, tokenizer, n_best, prefix_ids)

        return compiled(search, jit)

    def _draw(self, decoding, rules, samples, jit=False) -> Callable[..., GenerationResult]:
        def draw(input_ids, seed, source_numbers):
            begin = self._begin(input_ids, decoding.max_length if jit else None, samples)
            options = {"samples": samples, "seed": seed, "source_numbers": source_numbers}
            if self.continues:
                options["prompt_ids"] = input_ids
            step, tokenizer = self.backbone.step, self.output_tokenizer
            return decoding.sample(step, begin, tokenizer, rules, **options)

        return compiled(draw, jit)

    def _function(self, function: Callable, *specs: tf.TensorSpec, **options: Any) -> Callable:
        """The graph of a method of this task, with some of its arguments, traced once."""
        key = (function.__name__, *options.values())
        if key not in self._functions:
            self._functions[key] = ModelGraph(
                self.backbone, functools.partial(function, **options), specs, self._settings
            )
        return self._functions[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {self.decoding})"

"""What tasks that generate text have in common: search, scoring, what they serve."""

import abc
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import tensorflow as tf

from keras_attn.generation import Hypotheses, check_seed
from keras_attn.tasks.attention import attention_function
from keras_attn.tasks.base import Task
from keras_attn.tasks.continuing import sample_ids, search_ids
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.hypothesis import (
    COLUMNS,
    Hypothesis,
    best_text,
    hypotheses_in_batches,
    perplexity_of,
)
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.text_ids import batches_by_length, example_texts, ids_with_end, real_ids
from keras_attn.tasks.texts import check_pairs, check_texts
from keras_attn.tasks.token_view import TokenView
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
            GPT-2's own vocabulary; or there is a coverage penalty and the model tells no coverage.
    """

    input_role: ClassVar[str]
    """Role of the tokenizer of what goes in."""

    input_name: ClassVar[str]
    """What a text that goes in is called in an error."""

    output_role: ClassVar[str]
    """Role of the tokenizer of what comes out."""

    continues: ClassVar[bool] = False
    """Whether what comes out goes on from what goes in."""

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
                "A tokenizer must pad with id 0 and tell the end from padding.",
                pad_id=tokenizer.pad_id,
                end_id=tokenizer.end_id,
            )
        self.decoding = decoding or DecodingSettings()
        require(
            not self.decoding.coverage_penalty or getattr(backbone, "tells_coverage", False),
            "`coverage_penalty` needs a recurrent model with additive or Luong attention.",
            coverage_penalty=self.decoding.coverage_penalty,
            model=type(backbone).__name__,
        )
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

    def target_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Turns texts that come out into ids, an end id after each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text is longer than the task's maximum.
        """
        longest = self.decoding.max_length
        return ids_with_end(self.output_tokenizer, texts, longest, "target text")

    @abc.abstractmethod
    def read_tokens(self, text: tf.Tensor, target: tf.Tensor) -> TokenView:
        """Reads texts that go in and texts that come out as the model does, strings (batch,)."""

    @abc.abstractmethod
    def _begin(
        self, input_ids: tf.Tensor, room: int | None, beams: int, coverage: bool = False
    ) -> tuple[Any, dict]:
        """The token or tokens that the search begins with, and the state, maybe with a coverage."""

    @abc.abstractmethod
    def _texts_of(self, input_ids: tf.Tensor, token_ids: tf.Tensor) -> tf.Tensor:
        """Texts (batch, n_best) of the ids generated (batch, n_best, length)."""

    @abc.abstractmethod
    def _score_ids(self, input_ids: tf.Tensor, target_ids: tf.Tensor, jit: bool = False) -> dict:
        """`log_probability` (batch,) of each target and its `length` (batch,), the end included."""

    def _settings(self):
        return {"decoding": vars(self.decoding)}

    def generate(self, *texts: Any, **options: Any) -> Any:
        """Generates texts: another name of `predict`."""
        return self.predict(*texts, **options)

    def with_decoding(self, **changes: Any) -> Self:
        """Gives the same model as a task that generates otherwise.

        Args:
            **changes: The settings that differ, `None` for those that do not (see
                `DecodingSettings`).

        Raises:
            UserError: There is no such setting, a value is out of its range, or the model is none
                for it.
        """
        decoding = self.decoding.replace(**changes)
        settings = self._settings() | {"decoding": vars(decoding)}
        return self._from_parts(self.backbone, self.tokenizers, settings)

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
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text.

        Args:
            texts: The sources.
            n_best: Number of hypotheses for each, at most `beams`.
            beams: Width of the beam search; the task's own by default.
            progress: Called with the number of texts done after each batch.
            prefixes: For each text what its hypotheses begin with: whole words, for their tokens
                are those of the prefix by itself.

        Returns:
            For each text its hypotheses, the best first; there are fewer than `n_best` where the
            model has no more.

        Raises:
            UserError: A text is longer than the task's maximum, or `n_best` exceeds `beams`.
        """
        decoding = self.decoding.replace(beams=beams)
        _check_n_best(n_best, decoding)
        texts = check_texts("texts", texts)
        options = {"decoding": decoding, "n_best": n_best}
        if prefixes is None:
            generate = self._function(self._generate_texts, _TEXTS, **options)
            return self._in_batches(texts, progress, lambda _, batch: generate(batch))
        texts, prefixes = self._check_prefixes(texts, prefixes)
        complete = self._function(self._complete_texts, _TEXTS, _TEXTS, **options)
        return self._in_batches(
            texts,
            progress,
            lambda positions, batch: complete(
                batch, tf.constant([prefixes[position] for position in positions])
            ),
        )

    def sample(
        self,
        texts: Sequence[str],
        samples: int = 1,
        seed: int = 0,
        first_number: int = 0,
        progress: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Draws texts for each text at random.

        The same seed gives the same texts: what is drawn for one depends on the seed, the text and
        its number, not on the other texts (see `keras_attn.generation.sample`).

        Args:
            texts: The sources.
            samples: How many texts to draw for each.
            seed: Of the random numbers, an integer of 0 or more, below 2 ** 32.
            first_number: Number of the first text, where these continue others.
            progress: Called with the number of texts done after each batch.
            **settings: Decoding settings that differ from the task's, such as `temperature`,
                `top_k`, `top_p` and `repetition_penalty`.

        Returns:
            For each text its samples in the order in which they were drawn, with the
            log-probabilities that the model gives them; those of no probability are left out.

        Raises:
            UserError: A text is longer than the task's maximum, or a setting is out of its range.
        """
        decoding = self.decoding.replace(**settings)
        require_positive(samples=samples)
        decoding.check_hypotheses("samples", samples)
        check_seed(seed)
        texts = check_texts("texts", texts)
        draw = self._function(
            self._sample_texts,
            _TEXTS,
            tf.TensorSpec([], tf.uint32),
            tf.TensorSpec([None], tf.int32),
            decoding=decoding,
            rules=decoding.sampling,
            samples=samples,
        )
        seed = tf.constant(seed, tf.uint32)
        return self._in_batches(
            texts,
            progress,
            lambda positions, batch: draw(batch, seed, tf.constant(positions) + first_number),
        )

    def _in_batches(self, texts, progress, generate) -> list[list[Hypothesis]]:
        """What `generate(positions, texts)` makes of batches of texts of similar lengths."""

        def columns(positions):
            outputs = generate(positions, tf.constant([texts[position] for position in positions]))
            return [outputs[name].numpy() for name in COLUMNS]

        longest = self.decoding.max_source_length
        batches = batches_by_length(self.input_tokenizer, texts, self.input_name, longest)
        return hypotheses_in_batches(batches, columns, progress)

    def _check_prefixes(self, texts, prefixes) -> tuple[list[str], list[str]]:
        texts, prefixes = check_pairs(texts, prefixes)
        tokenizer, longest = self.output_tokenizer, self.decoding.max_length
        batches_by_length(tokenizer, prefixes, "prefix", longest)
        for prefix, ids in zip(prefixes, tokenizer.tokenize(prefixes).to_list(), strict=True):
            require(
                tokenizer.unknown_id not in ids,
                "A prefix must be written in tokens that the model can generate.",
                prefix=prefix,
            )
        return texts, prefixes

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
        score = self._function(self._score_texts, _TEXTS, _TEXTS)
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
        """Gives the functions that an exported task serves (see `keras_attn.tasks.serving`).

        Beside each signature of texts stands one of token ids. Ids of targets end with the end id,
        as those do that come out; 0 is padding wherever it stands.
        """
        _check_n_best(n_best, self.decoding)
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

        texts, ids = {"text": _TEXTS}, {ids_name: _IDS}
        longest = {ids_name: self.decoding.max_source_length}
        pairs = texts | {"target": _TEXTS}
        return {
            "serving_default": ServingFunction(best, texts),
            "n_best": ServingFunction(several, texts),
            "score": ServingFunction(score, pairs, example_pairs),
            "token_ids": ServingFunction(best_ids, ids, example_ids, longest=longest),
            "n_best_token_ids": ServingFunction(several_ids, ids, example_ids, longest=longest),
            "score_token_ids": ServingFunction(
                score_ids,
                ids | {"target_ids": _IDS},
                example_id_pairs,
                longest=longest | {"target_ids": self.decoding.max_length},
            ),
            "attention": attention_function(self.backbone, self.read_tokens, pairs, example_pairs),
        }

    def example_texts(self) -> list[str]:
        """Gives a few texts of unequal lengths, made of the commonest tokens."""
        return example_texts(self.input_tokenizer, self.decoding.max_source_length)

    def _example_targets(self, texts):
        # Bytes that are no text are read again as more tokens than they were generated as.
        targets, longest = self.predict(texts, beams=1), self.decoding.max_length
        lengths = self.output_tokenizer.tokenize(tf.constant(targets)).row_lengths().numpy()
        fitting = itertools.cycle(example_texts(self.output_tokenizer, longest))
        return [
            target if length < longest else next(fitting)
            for target, length in zip(targets, lengths, strict=True)
        ]

    def real_ids(self, input_ids: tf.Tensor) -> tf.Tensor:
        """Turns ids as users give them into those that the model reads, with padding at the end.

        Args:
            input_ids: int32 (batch, length), 0 at padding, wherever it stands.

        Returns:
            int32 (batch, length).
        """
        return real_ids(input_ids)

    def resources(self) -> list:
        """Gives all that the serving functions use."""
        return [*self.tokenizers.values(), *self.backbone.variables]

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

    def _sample_texts(
        self, texts, seed, source_numbers, decoding, rules, samples, jit=False
    ) -> dict:
        input_ids = self.input_ids(texts)
        draw = self._draw(decoding, rules, samples, jit)
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

    def _search(self, jit=False) -> Callable[..., Hypotheses]:
        def search(input_ids, decoding, n_best, prefix_ids=None):
            # XLA needs the sizes of what a loop carries to be known.
            room = decoding.max_length if jit else None
            begin = self._begin(input_ids, room, decoding.beams, bool(decoding.coverage_penalty))
            step, tokenizer = self.backbone.step, self.output_tokenizer
            return search_ids(step, begin, tokenizer, decoding, n_best, prefix_ids)

        # Strings cannot be compiled: XLA gets what lies between the tokenizers.
        return tf.function(search, jit_compile=True, autograph=False) if jit else search

    def _draw(self, decoding, rules, samples, jit=False) -> Callable[..., Hypotheses]:
        def draw(input_ids, seed, source_numbers):
            begin = self._begin(input_ids, decoding.max_length if jit else None, samples)
            options = {"samples": samples, "seed": seed, "source_numbers": source_numbers}
            if self.continues:
                options["prompt_ids"] = input_ids
            step, tokenizer = self.backbone.step, self.output_tokenizer
            return sample_ids(step, begin, tokenizer, decoding, rules, **options)

        return tf.function(draw, jit_compile=True, autograph=False) if jit else draw

    def _function(self, function: Callable, *specs: tf.TensorSpec, **options: Any) -> Callable:
        """The graph of a method of this task, with some of its arguments, traced once."""
        key = (function.__name__, *options.values())
        if key not in self._functions:
            self._functions[key] = tf.function(
                functools.partial(function, **options),
                input_signature=list(specs),
                autograph=False,
            )
        return self._functions[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {self.decoding})"


def first_of_each(outputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Takes the first hypothesis of each source.

    Args:
        outputs: Tensors (batch, n_best, …) by name.

    Returns:
        The same, (batch, …).
    """
    return {name: values[:, 0] for name, values in outputs.items()}


def _check_n_best(n_best: int, decoding: DecodingSettings) -> None:
    require_positive(n_best=n_best)
    require(
        n_best <= decoding.beams,
        "`n_best` must not exceed the beams.",
        n_best=n_best,
        beams=decoding.beams,
    )

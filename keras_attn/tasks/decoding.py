"""Settings of text generation, which are saved with a task."""

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_attn.generation import (
    LENGTH_PENALTY_FORMS,
    STOPPING,
    Constraints,
    GenerationResult,
    SamplingRules,
    beam_search,
    greedy_search,
    sample,
)
from keras_attn.limits import GENERATED_TOKENS, HYPOTHESES
from keras_attn.renamed import renamed_arguments, renamed_fields, renamed_keys
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_one_of, require_positive

RENAMED_DECODING = {"free_end": "forced_end_is_free"}

# What a single call can change: the lengths of sources are the task's.
_OF_SEARCH = ("beams", "stopping", "forced_end_is_free", "coverage_penalty")
_OF_SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty")
_OF_BOTH = (
    "max_length",
    "min_length",
    "length_penalty",
    "length_penalty_form",
    "no_repeat_ngram",
    "banned_words",
)


@renamed_fields(**RENAMED_DECODING)
@dataclasses.dataclass(frozen=True)
class DecodingSettings:
    """Settings of beam search and sampling.

    Attributes:
        beams: Width of the beam search; 1 is greedy search.
        length_penalty: Exponent of the length penalty, 0 for none.
        max_source_length: Maximum number of source tokens, including the end token.
        max_length: Maximum number of generated tokens, including the end token.
        min_length: Minimum number of generated tokens, including the end token.
        length_penalty_form: "gnmt" or "length" (see `keras_attn.generation.length_normalizer`).
        stopping: When to stop a beam search: "exact", "early" or "heuristic" (see
            `keras_attn.generation.beam_search`).
        forced_end_is_free: Whether beam search gives an end token that is forced at `max_length`
            probability 1 (see `keras_attn.generation.beam_search`).
        coverage_penalty: Penalty of beam search hypotheses that do not attend to the whole source,
            0 for none; for recurrent models with attention only (see
            `keras_attn.generation.beam_search`).
        no_repeat_ngram: Size of the n-grams that are never generated twice; 0 for no such rule.
        banned_words: Texts whose token sequences are never generated, alone or inside other words.
            If a tokenizer writes a word differently at the beginning and in the middle of a text,
            list both.
        temperature: Value by which sampling divides the logits.
        top_k: Number of most probable tokens to sample from; 0 for no limit.
        top_p: Probability of the smallest set of tokens to sample from; 1 for all tokens.
        repetition_penalty: Factor by which sampling lowers the logits of tokens that have occurred
            before, including those of a language model's prompt; 1 for none.

    Examples:
        >>> settings = DecodingSettings(beams=5, max_length=64, no_repeat_ngram=3)
        >>> greedy = settings.replace(beams=1)
        >>> greedy.beams, greedy.max_length
        (1, 64)
    """

    beams: int = 4
    length_penalty: float = 0.6
    max_source_length: int = 256
    max_length: int = 256
    min_length: int = 0
    length_penalty_form: str = "gnmt"
    stopping: str = "exact"
    forced_end_is_free: bool = False
    coverage_penalty: float = 0.0
    no_repeat_ngram: int = 0
    banned_words: tuple[str, ...] = ()
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self):
        require_positive(
            beams=self.beams, max_source_length=self.max_source_length, max_length=self.max_length
        )
        self.check_hypotheses("beams", self.beams)
        whole = isinstance(self.min_length, numbers.Integral)
        require(
            whole and 0 <= self.min_length <= self.max_length,
            "`min_length` must be a whole number between 0 and `max_length`.",
            min_length=self.min_length,
            max_length=self.max_length,
        )
        for name in ("length_penalty", "coverage_penalty"):
            value = getattr(self, name)
            require(
                isinstance(value, numbers.Real) and 0 <= value < math.inf,
                f"`{name}` must be a finite number of at least 0.",
                **{name: value},
            )
        require_one_of("length_penalty_form", self.length_penalty_form, LENGTH_PENALTY_FORMS)
        require_one_of("stopping", self.stopping, STOPPING)
        require(
            isinstance(self.forced_end_is_free, bool),
            "`forced_end_is_free` must be true or false.",
            forced_end_is_free=self.forced_end_is_free,
        )
        Constraints(self.no_repeat_ngram)
        _ = self.sampling
        for name in ("temperature", "top_k", "top_p", "repetition_penalty"):
            value = getattr(self, name)
            require(
                isinstance(value, numbers.Real), f"`{name}` must be one number.", **{name: value}
            )
        words = self.banned_words
        require(
            isinstance(words, list | tuple)
            and all(isinstance(word, str) and word for word in words),
            "`banned_words` must be a list of nonempty texts.",
            banned_words=words,
        )
        # JSON and YAML have lists, which are not hashable.
        object.__setattr__(self, "banned_words", tuple(words))

    @property
    def sampling(self) -> SamplingRules:
        """The rules of sampling."""
        return SamplingRules(self.temperature, self.top_k, self.top_p, self.repetition_penalty)

    def check_hypotheses(self, name: str, count: int) -> None:
        """Checks the number of hypotheses per text against the limits of `keras_attn.limits`.

        Args:
            name: Name of the setting, "beams" or "samples".
            count: Number of hypotheses.

        Raises:
            UserError: A limit is exceeded.
        """
        place = f"`{name}`={count}"
        HYPOTHESES.check(count, place)
        GENERATED_TOKENS.check(count * self.max_length, f"{place}, `max_length`={self.max_length}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "DecodingSettings":
        """Makes settings of what a `task.json` holds, also one of the previous version."""
        return cls(**renamed_keys(values, RENAMED_DECODING))

    @renamed_arguments(**RENAMED_DECODING)
    def replace(self, **changes: Any) -> "DecodingSettings":
        """Returns a copy with some settings changed; `None` leaves a setting as it is."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            require_one_of("setting", name, names)
        changes = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self, **changes)

    def for_search(self, changes: Mapping[str, Any]) -> "DecodingSettings":
        """Returns a copy for one beam search, in which settings of sampling are refused."""
        return self._for_call(changes, (*_OF_SEARCH, *_OF_BOTH))

    def for_sampling(self, changes: Mapping[str, Any]) -> "DecodingSettings":
        """Returns a copy for one call of `sample`, in which settings of beam search are refused."""
        return self._for_call(changes, (*_OF_SAMPLING, *_OF_BOTH))

    def _for_call(self, changes: Mapping[str, Any], names: tuple[str, ...]) -> "DecodingSettings":
        for name in renamed_keys(changes, RENAMED_DECODING):
            require_one_of("setting", name, names)
        return self.replace(**changes)

    def search(
        self,
        step: Callable,
        begin: tuple[Any, dict],
        tokenizer: Tokenizer,
        n_best: int,
        prefix_ids: tf.Tensor | None = None,
    ) -> GenerationResult:
        """Searches for the most probable texts.

        Args:
            step: The model's step function.
            begin: The token or tokens fed first, and the state for `beams` beams.
            tokenizer: Tokenizer of the generated texts.
            n_best: Number of hypotheses per source.
            prefix_ids: Required first tokens of each text, int32 (batch, length), 0 at padding.

        Returns:
            The hypotheses of each source, the best first.
        """
        start_id, state = begin
        rules = {"start_id": start_id, **self._rules(tokenizer, prefix_ids)}
        if self.beams == 1:
            return greedy_search(step, state, **rules)
        return beam_search(
            step,
            state,
            self.beams,
            n_best=n_best,
            stopping=self.stopping,
            forced_end_is_free=self.forced_end_is_free,
            coverage_penalty=self.coverage_penalty,
            **rules,
        )

    def sample(
        self,
        step: Callable,
        begin: tuple[Any, dict],
        tokenizer: Tokenizer,
        rules: SamplingRules,
        **options: Any,
    ) -> GenerationResult:
        """Samples texts.

        Args:
            step: The model's step function.
            begin: The token or tokens fed first, and the state, with one beam per sample.
            tokenizer: Tokenizer of the generated texts.
            rules: Temperature, top-k and top-p, which may be tensors; otherwise `sampling`.
            **options: Further arguments of `keras_attn.generation.sample`.

        Returns:
            The samples of each source, in the order in which they were drawn.
        """
        start_id, state = begin
        options = {"start_id": start_id, **self._rules(tokenizer, None), **options}
        return sample(step, state, rules=rules, **options)

    def _rules(self, tokenizer: Tokenizer, prefix_ids: tf.Tensor | None) -> dict[str, Any]:
        banned = []
        if self.banned_words:
            with tf.init_scope():  # Python numbers, inside a graph too
                banned = tokenizer.tokenize(tf.constant(self.banned_words)).to_list()
        special = {tokenizer.pad_id, tokenizer.start_id, tokenizer.unknown_id}
        return {
            "end_id": tokenizer.end_id,
            "max_length": self.max_length,
            "min_length": self.min_length,
            "length_penalty": self.length_penalty,
            "length_penalty_form": self.length_penalty_form,
            "forbidden_ids": tuple(sorted(special - {tokenizer.end_id})),
            "constraints": Constraints(
                self.no_repeat_ngram, tuple(map(tuple, filter(None, banned))), prefix_ids
            ),
        }

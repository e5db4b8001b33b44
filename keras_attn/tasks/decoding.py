"""Settings of generation, kept with a task."""

import dataclasses
import math
import numbers
from collections.abc import Mapping
from typing import Any

from keras_attn.generation import LENGTH_PENALTY_FORMS, STOPPING, Constraints, SamplingRules
from keras_attn.limits import GENERATED_TOKENS, HYPOTHESES
from keras_attn.renamed import renamed_arguments, renamed_keys
from keras_attn.validation import require, require_one_of, require_positive

_OLD_NAMES = {"free_end": "forced_end_is_free"}


@dataclasses.dataclass(frozen=True)
class DecodingSettings:
    """How a task generates.

    Attributes:
        beams: Width of the beam search; 1 is greedy search.
        length_penalty: Exponent of the length penalty, 0 for none.
        max_source_length: Most tokens of a source, its end token included.
        max_length: Most tokens of what is generated, its end token included.
        min_length: Fewest tokens of what is generated, its end token included.
        length_penalty_form: "gnmt" or "length" (see `keras_attn.generation.length_normalizer`).
        stopping: When a beam search is done: "exact", "early" or "heuristic" (see
            `keras_attn.generation.beam_search`).
        forced_end_is_free: Whether beam search gives an end token that is forced at `max_length`
            probability 1 (see `keras_attn.generation.beam_search`).
        coverage_penalty: What makes hypotheses of a beam search worse that have not looked at the
            whole of their source, 0 for nothing: for recurrent models with attention, which tell
            where they look (see `keras_attn.generation.beam_search`).
        no_repeat_ngram: No run of so many tokens occurs twice in what is generated; 0 for no such
            rule.
        banned_words: Texts whose tokens, in their order, do not occur in what is generated, neither
            by themselves nor as a part. Where the beginning of a word is written by other tokens
            than its middle, both are banned by two entries.
        temperature: Of sampling, by which logits are divided.
        top_k: Sampling draws from so many of the most probable tokens alone; 0 for no limit.
        top_p: Sampling draws from the smallest set of tokens of so much probability; 1 for all.
        repetition_penalty: Sampling makes tokens that have occurred, a language model's prompt
            included, less probable by it; 1 for none.
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
            beams=self.beams,
            max_source_length=self.max_source_length,
            max_length=self.max_length,
        )
        self.check_hypotheses("beams", self.beams)
        whole = isinstance(self.min_length, numbers.Integral)
        require(
            whole and 0 <= self.min_length <= self.max_length,
            "`min_length` must be a whole number between 0 and `max_length`.",
            min_length=self.min_length,
            max_length=self.max_length,
        )
        require(
            isinstance(self.length_penalty, numbers.Real) and 0 <= self.length_penalty < math.inf,
            "`length_penalty` must be a finite number of at least 0.",
            length_penalty=self.length_penalty,
        )
        require(
            isinstance(self.coverage_penalty, numbers.Real)
            and 0 <= self.coverage_penalty < math.inf,
            "`coverage_penalty` must be a finite number of at least 0.",
            coverage_penalty=self.coverage_penalty,
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
            "`banned_words` must be a list of texts, none of them empty.",
            banned_words=words,
        )
        # JSON and YAML give a list, which is no key of a dict.
        object.__setattr__(self, "banned_words", tuple(words))

    @property
    def sampling(self) -> SamplingRules:
        """What sampling draws from."""
        return SamplingRules(self.temperature, self.top_k, self.top_p, self.repetition_penalty)

    def check_hypotheses(self, name: str, count: int) -> None:
        """Refuses more hypotheses of a text, or longer ones, than there is to be memory for.

        Args:
            name: What they are called, "beams" or "samples".
            count: How many there are.

        Raises:
            UserError: They exceed a limit.
        """
        place = f"`{name}`={count}"
        HYPOTHESES.check(count, place)
        GENERATED_TOKENS.check(count * self.max_length, f"{place}, `max_length`={self.max_length}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "DecodingSettings":
        """Makes settings of what a `task.json` holds, also one of the previous version."""
        return cls(**renamed_keys(values, _OLD_NAMES))

    @renamed_arguments(**_OLD_NAMES)
    def replace(self, **changes: Any) -> "DecodingSettings":
        """Copies the settings with some changed, those of value `None` left as they are."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            require_one_of("setting", name, names)
        changes = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self, **changes)

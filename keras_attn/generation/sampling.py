"""Random sampling from the distribution of a model, or from a part of it."""

import dataclasses
import math
from collections.abc import Sequence

from keras import ops

from keras_attn.generation.constraints import Constraints
from keras_attn.generation.decoder_state import DecoderState, Step
from keras_attn.generation.logit_rules import (
    divide_by_temperature,
    draw_columns,
    keep_top_k_then_p,
    penalize_repetition,
)
from keras_attn.generation.result import GenerationResult, check_length_penalty
from keras_attn.generation.token_by_token import extend_rows
from keras_attn.generation.token_rules import TokenRules, finite_or_none, log_normalizer, token_set
from keras_attn.ops.random_bits import random_uniform
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import is_integer, is_real, require, require_positive

# Rules that may be tensors with a value for each source; numbers are checked.
_PER_SOURCE = {
    "temperature": (
        lambda value: 0 < value < math.inf,
        "`temperature` must be a finite number above 0; use greedy search instead of a "
        "temperature of 0.",
    ),
    "top_k": (
        lambda value: is_integer(value) and value >= 0,
        "`top_k` must be an integer of 0 or more (0 for no limit).",
    ),
    "top_p": (lambda value: 0 < value <= 1, "`top_p` must be a number above 0 and at most 1."),
}


@dataclasses.dataclass(frozen=True)
class SamplingRules:
    """Changes of the model's distribution before sampling; none by default.

    Each is a number for all sources or, except the last, a tensor (batch,) with a value for each.
    They are applied in the order of Hugging Face's `generate`: repetition penalty, temperature,
    top-k, top-p (relative to the tokens that top-k keeps).

    Attributes:
        temperature: Divisor of the logits.
        top_k: Samples only from the `top_k` most probable tokens; 0 for no limit. A number is
            faster than a tensor, for which the whole vocabulary is sorted.
        top_p: Samples only from the smallest set of tokens whose probabilities sum to `top_p`; 1
            for all tokens.
        repetition_penalty: Divisor of positive logits, and factor of negative logits, of tokens
            that have occurred; 1 for no change.

    Raises:
        UserError: A number is out of its range.

    Examples:
        >>> SamplingRules(temperature=0.8, top_k=40).top_p
        1.0
    """

    temperature: TensorLike = 1.0
    top_k: TensorLike = 0
    top_p: TensorLike = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name, (is_right, expectation) in _PER_SOURCE.items():
            value = getattr(self, name)
            if is_real(value) or isinstance(value, bool | str | None):
                require(is_real(value) and is_right(value), expectation, **{name: value})
        penalty = self.repetition_penalty
        require(
            is_real(penalty) and 0 < penalty < math.inf,
            "`repetition_penalty` must be a finite number above 0 (1 for no penalty).",
            repetition_penalty=penalty,
        )


def sample(
    step: Step,
    state: dict,
    start_id: TensorLike,
    end_id: int,
    max_length: int,
    seed: TensorLike,
    samples: int = 1,
    rules: SamplingRules | None = None,
    min_length: int = 0,
    length_penalty: float = 0.0,
    forbidden_ids: Sequence[int] = (),
    prompt_ids: TensorLike = None,
    source_numbers: TensorLike = None,
    length_penalty_form: str = "gnmt",
    constraints: Constraints | None = None,
) -> GenerationResult:
    """Samples texts token by token, independently of each other.

    The random numbers depend only on the seed, the number of the source, the number of the sample
    and the position. They are the same on every backend, with or without XLA, for all batches and
    numbers of samples. So equal logits give equal tokens. Logits that differ by rounding, such as
    those of batches of other sizes, can give another token in rare cases.

    Args:
        step: `step(token_ids, state, index) -> (logits, state)`: token_ids int32 (rows,) with
            rows = batch * samples, source by source; index int32 scalar; logits float
            (rows, vocabulary).
        state: `{"source": tree, "hypothesis": tree}`, one row per source in both. Rows of
            hypothesis leaves are repeated `samples` times.
        start_id: The first input token, such as the last of a prompt: one for all sources, or int32
            (batch,).
        end_id: The token that ends a text.
        max_length: Most tokens of a text, the end token included: at the last position only the
            end token is allowed. An int, or on TensorFlow without XLA a scalar int tensor.
        seed: Seed of the random numbers: an int of 32 bits, or int32 () or (batch,); with a seed
            for each source, samples do not depend on its position in the batch.
        samples: Number of texts for each source.
        rules: Changes of the model's distribution.
        min_length: Fewest tokens of a text, the end token included.
        length_penalty: Changes the scores, never the texts. See `length_normalizer`.
        forbidden_ids: Tokens that are never generated, such as padding and start. `rules` apply to
            the remaining tokens.
        prompt_ids: Tokens to which the repetition penalty also applies: int32 (batch, length), 0
            for padding.
        source_numbers: The sources' numbers, int32 (batch,); by default their positions in the
            batch, or 0 if there is a seed for each.
        length_penalty_form: "gnmt" or "length". See `length_normalizer`.
        constraints: Banned tokens and required beginnings of texts; `rules` apply to the remaining
            tokens.

    Returns:
        `GenerationResult` with `samples` texts per source, in the order of sampling. Their
        log-probabilities are those of the model's distribution without `rules`, and so comparable
        with those of a search.

    Raises:
        UserError: An argument is out of range, or state or logits have another structure.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> start_ids, state = model.prefill(np.array([[1, 5, 9], [1, 7, 0]]), max_length=6)
        >>> found = sample(model.step, state, start_ids, end_id=2, max_length=6, seed=1)
        >>> found.token_ids.shape
        (2, 1, 6)

    Reference:
        [Holtzman et al., 2019](https://arxiv.org/abs/1904.09751), section 3.
    """
    require_positive(samples=samples)
    check_length_penalty(length_penalty, length_penalty_form)
    form = DecoderState(state, max_length)
    constraints = constraints or Constraints()
    constraints.check_sources(form.batch)
    tokens = TokenRules(end_id, max_length, min_length, tuple(forbidden_ids))
    sampler = _Sampler(
        tokens,
        constraints,
        _repeated(rules or SamplingRules(), samples),
        _uniforms(seed, source_numbers, form.batch, samples, max_length),
        None if prompt_ids is None else ops.repeat(prompt_ids, samples, axis=0),
        form.dtype,
    )
    return extend_rows(
        step, form, start_id, tokens, sampler.choose, length_penalty, length_penalty_form, samples
    )


def check_seed(seed: TensorLike) -> int:
    """Returns the seed; raises `UserError` unless it is an integer of 32 bits.

    Examples:
        >>> check_seed(7)
        7
    """
    require(
        is_integer(seed) and 0 <= seed < 2**32,
        "`seed` must be an integer of 0 or more, below 2 ** 32.",
        seed=seed,
    )
    return int(seed)


@dataclasses.dataclass(frozen=True)
class _Sampler:
    """Samples the tokens of a position; all tensors have one row for each text."""

    tokens: TokenRules
    constraints: Constraints
    rules: SamplingRules
    uniforms: Tensor
    prompt_ids: TensorLike
    dtype: str

    def choose(self, logits: Tensor, token_ids: Tensor, index: TensorLike) -> tuple[Tensor, Tensor]:
        """Draws the next tokens (see `token_by_token.Choose`)."""
        logits = ops.cast(logits, self.dtype)
        offered = self.tokens.offer(logits, index)
        is_banned = self.constraints.banned_tokens(token_ids, index, logits.shape[-1])
        if is_banned is not None:
            offered = ops.where(is_banned, -math.inf, offered)
        offered = self._rule(offered, token_ids, index)
        uniforms = ops.cast(ops.take(self.uniforms, index, axis=1), self.dtype)
        tokens = draw_columns(offered, uniforms)[:, None]
        is_offered = ops.take_along_axis(offered, tokens, axis=1) > -math.inf
        log_probabilities = ops.take_along_axis(logits, tokens, axis=1) - log_normalizer(logits)
        log_probabilities = ops.where(is_offered, log_probabilities, -math.inf)
        log_probabilities = finite_or_none(log_probabilities)
        return ops.squeeze(tokens, axis=1), ops.squeeze(log_probabilities, axis=1)

    def _rule(self, logits: Tensor, token_ids: Tensor, index: TensorLike) -> Tensor:
        """The logits to sample from."""
        rules = self.rules
        if rules.repetition_penalty != 1:
            seen = self._seen(token_ids, index, logits.shape[-1])
            logits = penalize_repetition(logits, seen, rules.repetition_penalty)
        logits = divide_by_temperature(logits, rules.temperature)
        return keep_top_k_then_p(logits, rules.top_k, rules.top_p)

    def _seen(self, token_ids: Tensor, index: TensorLike, vocabulary: int) -> Tensor:
        counted = ops.broadcast_to(
            ops.arange(ops.shape(token_ids)[1]) < index, ops.shape(token_ids)
        )
        if self.prompt_ids is not None:
            token_ids = ops.concatenate([self.prompt_ids, token_ids], axis=1)
            counted = ops.concatenate([self.prompt_ids != 0, counted], axis=1)
        return token_set(token_ids, counted, vocabulary)


def _repeated(rules: SamplingRules, samples: int) -> SamplingRules:
    """The rules with a value for each text instead of each source."""
    values = {name: getattr(rules, name) for name in _PER_SOURCE}
    values = {
        name: value if is_real(value) else ops.repeat(value, samples, axis=0)
        for name, value in values.items()
    }
    return dataclasses.replace(rules, **values)


def _uniforms(
    seed: TensorLike,
    source_numbers: TensorLike,
    batch: Tensor,
    samples: int,
    max_length: TensorLike,
) -> Tensor:
    """Two uniform numbers for each text and position, float32 (batch * samples, max_length, 2)."""
    if seed is None or is_integer(seed):
        seed = ops.convert_to_tensor(check_seed(seed), dtype="uint32")
    seed = ops.convert_to_tensor(seed)
    require(
        len(seed.shape) < 2 and "int" in str(seed.dtype),
        "`seed` must be an integer, or one for each source.",
        seed=seed,
    )
    if source_numbers is None:
        source_numbers = ops.arange(batch) if len(seed.shape) == 0 else ops.zeros((1,), "int32")
    seed = ops.reshape(seed, (-1, 1, 1))
    sources = ops.reshape(source_numbers, (-1, 1, 1))
    texts, positions = ops.arange(samples)[:, None], ops.arange(max_length)
    numbers_drawn = random_uniform((seed, sources), (texts, positions))
    numbers_drawn = ops.broadcast_to(numbers_drawn, (batch, samples, max_length, 2))
    return ops.reshape(numbers_drawn, (batch * samples, max_length, 2))

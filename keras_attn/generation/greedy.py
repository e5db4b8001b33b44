"""Greedy search: the most probable next token, until the end token."""

from collections.abc import Sequence

from keras import ops

from keras_attn.generation.constraints import Constraints
from keras_attn.generation.decoder_state import DecoderState, Step
from keras_attn.generation.result import GenerationResult, check_length_penalty
from keras_attn.generation.token_by_token import extend_rows
from keras_attn.generation.token_rules import TokenRules
from keras_attn.ops.top_k import leftmost_top_k
from keras_attn.tensors import Tensor, TensorLike


def greedy_search(
    step: Step,
    state: dict,
    start_id: TensorLike,
    end_id: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 0.0,
    forbidden_ids: Sequence[int] = (),
    length_penalty_form: str = "gnmt",
    constraints: Constraints | None = None,
) -> GenerationResult:
    """Extends each source's hypothesis by its most probable token until all have ended.

    Of equally probable tokens the one with the lowest id is chosen. Finished hypotheses get the end
    token as input until all have finished; their outputs are ignored.

    Args:
        step: `step(token_ids, state, index) -> (logits, state)`: token_ids int32 (batch,), index
            int32 scalar, logits float (batch, vocabulary).
        state: `{"source": tree, "hypothesis": tree}`, one row per source.
        start_id: The first input token, such as the last of a prompt: one for all sources, or int32
            (batch,).
        end_id: The token that ends a hypothesis.
        max_length: Most tokens of a hypothesis, the end token included: at the last position
            only the end token is allowed. An int, or on TensorFlow without XLA a scalar int
            tensor.
        min_length: Fewest tokens of a hypothesis, the end token included.
        length_penalty: Changes the scores, never the texts. See `length_normalizer`.
        forbidden_ids: Tokens that are never generated, such as padding and start.
        length_penalty_form: "gnmt" or "length". See `length_normalizer`.
        constraints: Banned tokens and required beginnings of texts.

    Returns:
        `GenerationResult` with one hypothesis per source.

    Raises:
        UserError: An argument is out of range, or state or logits have another structure.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> start_ids, state = model.prefill(np.array([[1, 5, 9], [1, 7, 0]]), max_length=6)
        >>> found = greedy_search(model.step, state, start_ids, end_id=2, max_length=6)
        >>> found.token_ids.shape
        (2, 1, 6)
    """
    check_length_penalty(length_penalty, length_penalty_form)
    rules = TokenRules(end_id, max_length, min_length, tuple(forbidden_ids))
    constraints = constraints or Constraints()
    form = DecoderState(state, max_length)
    constraints.check_sources(form.batch)

    def choose(logits: Tensor, token_ids: Tensor, index: TensorLike) -> tuple[Tensor, Tensor]:
        is_banned = constraints.banned_tokens(token_ids, index, logits.shape[-1])
        # Two, since the most probable token may be an end token that is not allowed yet.
        log_probabilities, token_ids = rules.rank(logits, index, 2, form.dtype, is_banned)
        best, choice = leftmost_top_k(log_probabilities, 1)
        token = ops.squeeze(ops.take_along_axis(token_ids, choice, axis=1), axis=1)
        return token, ops.squeeze(best, axis=1)

    return extend_rows(step, form, start_id, rules, choose, length_penalty, length_penalty_form)

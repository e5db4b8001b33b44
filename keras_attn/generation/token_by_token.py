"""Decoding with one text per row, in which each token is final."""

import math
from collections.abc import Callable

from keras import ops

from keras_attn.generation.decoder_state import (
    DecoderState,
    Step,
    first_tokens,
    run_step,
    take_rows,
)
from keras_attn.generation.result import GenerationResult, drop_impossible, length_normalizer
from keras_attn.generation.token_rules import TokenRules
from keras_attn.tensors import Tensor, TensorLike

#: `choose(logits, token_ids, index) -> (tokens, log_probabilities)`, both (rows,): the next token
#: of each row whose tokens so far are the first `index` of `token_ids` (rows, max_length), and its
#: log-probability, `-inf` if there is none.
Choose = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def extend_rows(
    step: Step,
    form: DecoderState,
    start_id: TensorLike,
    rules: TokenRules,
    choose: Choose,
    length_penalty: float,
    length_penalty_form: str,
    samples: int = 1,
) -> GenerationResult:
    """Extends every row by the tokens chosen for it until all have ended.

    Finished rows get the end token as input until all have finished; their outputs are ignored.

    Args:
        step: See `greedy_search`.
        form: The state.
        start_id: The first input token, one for all sources or one for each, int32 (batch,).
        rules: The tokens that may be generated.
        choose: Chooses the next tokens.
        length_penalty: See `length_normalizer`.
        length_penalty_form: See `length_normalizer`.
        samples: Number of rows of each source.

    Returns:
        `GenerationResult`, `samples` for each source.
    """
    end_id, max_length, rows = rules.end_id, rules.max_length, form.batch * samples
    state, tokens = form.initial, first_tokens(start_id, form.batch)
    if samples > 1:
        state = take_rows(state, ops.arange(rows) // samples)
        tokens = ops.repeat(tokens, samples, axis=0)

    def is_unfinished(carry: dict) -> Tensor:
        return ops.logical_and(
            carry["index"] < max_length, ops.logical_not(ops.all(carry["is_ended"]))
        )

    def extend(carry: dict) -> dict:
        index, is_ended = carry["index"], carry["is_ended"]
        logits, new_state = run_step(
            step, carry["previous"], form.unflatten(carry["state"]), index, rows
        )
        token, log_probabilities = choose(logits, carry["token_ids"], index)
        token = ops.where(is_ended, end_id, token)
        total = carry["log_probabilities"] + ops.where(is_ended, 0.0, log_probabilities)
        here = ops.logical_and(ops.arange(max_length) == index, ops.logical_not(is_ended)[:, None])
        return {
            "index": index + 1,
            "previous": token,
            "is_ended": ops.logical_or(token == end_id, total == -math.inf),
            "token_ids": ops.where(here, token[:, None], carry["token_ids"]),
            "log_probabilities": total,
            "lengths": carry["lengths"] + ops.cast(ops.logical_not(is_ended), "int32"),
            "state": form.flatten(new_state),
        }

    carry = {
        "index": ops.convert_to_tensor(0, "int32"),
        "previous": tokens,
        "is_ended": ops.zeros((rows,), dtype="bool"),
        "token_ids": ops.zeros((rows, max_length), dtype="int32"),
        "log_probabilities": ops.zeros((rows,), dtype=form.dtype),
        "lengths": ops.zeros((rows,), dtype="int32"),
        "state": form.flatten(state),
    }
    carry = ops.while_loop(is_unfinished, extend, carry)
    total, lengths = carry["log_probabilities"], carry["lengths"]
    scores = total / length_normalizer(lengths, length_penalty, form.dtype, length_penalty_form)
    found = (carry["token_ids"], scores, total, lengths)
    parts = (ops.reshape(part, (form.batch, samples, *ops.shape(part)[1:])) for part in found)
    return drop_impossible(GenerationResult(*parts))

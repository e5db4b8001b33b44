"""Decoding with one text per row, in which each token is final."""

import math
from collections.abc import Callable

from keras import ops

from keras_attn.generation.decoder_state import DecoderState, Step, run_step
from keras_attn.generation.hypotheses import Hypotheses
from keras_attn.tensors import Tensor, TensorLike

#: `choose(logits, token_ids, index) -> (tokens, log_probabilities)`, both (rows,): the next token
#: of each row whose tokens so far are the first `index` of `token_ids` (rows, max_length), and its
#: log-probability, `-inf` if there is none.
Choose = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def extend_rows(
    step: Step,
    form: DecoderState,
    state: dict,
    tokens: Tensor,
    rows: Tensor,
    end_id: int,
    max_length: TensorLike,
    choose: Choose,
) -> Hypotheses:
    """Extends every row by the tokens chosen for it until all have ended.

    Finished rows get the end token as input until all have finished; their outputs are ignored.

    Args:
        step: See `greedy_search`.
        form: Properties of the state; its number of rows may differ.
        state: One row in `"hypothesis"` for each of `tokens`.
        tokens: The first input tokens, int32 (rows,).
        rows: Number of rows, an int if it is known.
        end_id: The token that ends a text.
        max_length: Most tokens of a text.
        choose: Chooses the next tokens.

    Returns:
        `Hypotheses` without the dimension `n_best`, with the log-probabilities as scores.
    """

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
    return Hypotheses(
        token_ids=carry["token_ids"],
        scores=carry["log_probabilities"],
        log_probabilities=carry["log_probabilities"],
        lengths=carry["lengths"],
    )

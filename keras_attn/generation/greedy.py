"""Greedy search: the most probable next token, until the end token."""

import math
from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_attn.generation.decoder_state import DecoderState, Step, first_tokens, run_step
from keras_attn.generation.hypotheses import (
    Hypotheses,
    check_length_penalty,
    drop_impossible,
    length_normalizer,
)
from keras_attn.generation.token_rules import TokenRules


def greedy_search(
    step: Step,
    state: dict,
    start_id: Any,
    end_id: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 0.0,
    forbidden_ids: Sequence[int] = (),
) -> Hypotheses:
    """Extends each source's hypothesis by its most probable token until all have ended.

    Of equally probable tokens the one of the lowest id is taken. A hypothesis that has ended is
    fed the end token until the last one has; what the model makes of it is ignored.

    Args:
        step: `step(token_ids, state, index) -> (logits, state)`: token_ids int32 (batch,), index
            int32 scalar, logits float (batch, vocabulary).
        state: `{"source": tree, "hypothesis": tree}`, one row per source.
        start_id: The token fed first, such as a prompt's last: one for all, or int32 (batch,).
        end_id: The token that ends a hypothesis.
        max_length: Most tokens of a hypothesis, the end token included: at the last position
            only the end token is offered. An int, or on TensorFlow without XLA a scalar int
            tensor.
        min_length: Fewest tokens of a hypothesis, the end token included.
        length_penalty: Changes the score, never the choice. See `length_normalizer`.
        forbidden_ids: Tokens that are never offered, such as padding and start.

    Returns:
        `Hypotheses` with one hypothesis per source.

    Raises:
        UserError: An argument is out of its range, or state or logits have another form.
    """
    check_length_penalty(length_penalty)
    rules = TokenRules(end_id, max_length, min_length, tuple(forbidden_ids))
    form = DecoderState(state)
    batch, dtype = form.batch, form.dtype

    def is_unfinished(carry: dict) -> Any:
        return ops.logical_and(
            carry["index"] < max_length, ops.logical_not(ops.all(carry["is_ended"]))
        )

    def extend(carry: dict) -> dict:
        index, is_ended = carry["index"], carry["is_ended"]
        logits, new_state = run_step(
            step, carry["previous"], form.unflatten(carry["state"]), index, batch
        )
        # Two, since the most probable one may be an end token that comes too early.
        log_probabilities, token_ids = rules.rank(logits, index, 2, dtype)
        best, choice = ops.top_k(log_probabilities, 1)
        token = ops.squeeze(ops.take_along_axis(token_ids, choice, axis=1), axis=1)
        token = ops.where(is_ended, end_id, token)
        total = carry["log_probabilities"] + ops.where(is_ended, 0.0, ops.squeeze(best, axis=1))
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
        "previous": first_tokens(start_id, batch),
        "is_ended": ops.zeros((batch,), dtype="bool"),
        "token_ids": ops.zeros((batch, max_length), dtype="int32"),
        "log_probabilities": ops.zeros((batch,), dtype=dtype),
        "lengths": ops.zeros((batch,), dtype="int32"),
        "state": form.flatten(form.initial),
    }
    carry = ops.while_loop(is_unfinished, extend, carry)
    found = Hypotheses(
        token_ids=carry["token_ids"],
        scores=carry["log_probabilities"]
        / length_normalizer(carry["lengths"], length_penalty, dtype),
        log_probabilities=carry["log_probabilities"],
        lengths=carry["lengths"],
    )
    return drop_impossible(Hypotheses(*(ops.expand_dims(part, axis=1) for part in found)))

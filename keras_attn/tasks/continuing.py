"""From a model's first state to hypotheses, by a task's settings."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_attn.generation import (
    Constraints,
    Hypotheses,
    SamplingRules,
    beam_search,
    greedy_search,
    sample,
)
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tokenizers import Tokenizer


def search_ids(
    step: Callable,
    begin: tuple[Any, dict],
    tokenizer: Tokenizer,
    decoding: DecodingSettings,
    n_best: int,
    prefix_ids: tf.Tensor | None = None,
) -> Hypotheses:
    """Searches the most probable texts.

    Args:
        step: The model's step.
        begin: The token or tokens fed first, and the state for as many beams as are set.
        tokenizer: Of what is generated.
        decoding: The settings.
        n_best: Number of hypotheses for each source.
        prefix_ids: What each text begins with, int32 (batch, length), 0 as padding.
    """
    start_id, state = begin
    settings = {"start_id": start_id} | _settings(tokenizer, decoding, prefix_ids)
    if decoding.beams == 1:
        return greedy_search(step, state, **settings)
    settings |= {
        "stopping": decoding.stopping,
        "forced_end_is_free": decoding.forced_end_is_free,
        "coverage_penalty": decoding.coverage_penalty,
    }
    return beam_search(step, state, decoding.beams, n_best=n_best, **settings)


def sample_ids(
    step: Callable,
    begin: tuple[Any, dict],
    tokenizer: Tokenizer,
    decoding: DecodingSettings,
    rules: SamplingRules,
    **options: Any,
) -> Hypotheses:
    """Draws texts.

    Args:
        step: The model's step.
        begin: The token or tokens fed first, and the state for as many beams as there are samples.
        tokenizer: Of what is generated.
        decoding: The settings.
        rules: What is drawn from.
        **options: Further arguments of `keras_attn.generation.sample`.
    """
    start_id, state = begin
    settings = {"start_id": start_id} | _settings(tokenizer, decoding, None)
    return sample(step, state, rules=rules, **options, **settings)


def _settings(tokenizer, decoding, prefix_ids) -> dict[str, Any]:
    banned = []
    if decoding.banned_words:
        with tf.init_scope():  # rows of Python's numbers, in a graph too
            banned = tokenizer.tokenize(tf.constant(decoding.banned_words)).to_list()
    special = {tokenizer.pad_id, tokenizer.start_id, tokenizer.unknown_id}
    return {
        "end_id": tokenizer.end_id,
        "max_length": decoding.max_length,
        "min_length": decoding.min_length,
        "length_penalty": decoding.length_penalty,
        "length_penalty_form": decoding.length_penalty_form,
        "forbidden_ids": tuple(sorted(special - {tokenizer.end_id})),
        "constraints": Constraints(
            decoding.no_repeat_ngram, tuple(map(tuple, filter(None, banned))), prefix_ids
        ),
    }

"""Time of greedy generation by a preset's model with random weights and a fixed length.

Implements `keras-attn benchmark generate`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.benchmarks.timing import median_seconds
from keras_attn.generation import greedy_search
from keras_attn.models import model_class
from keras_attn.models.decoding.language_model import LanguageModel
from keras_attn.tokenizers.base import SPECIAL_TOKENS
from keras_attn.validation import require, require_positive

START_ID, END_ID = SPECIAL_TOKENS.index("<s>"), SPECIAL_TOKENS.index("</s>")


def benchmark_generation(
    preset: str,
    batches: Sequence[int] = (1, 16),
    source: int = 32,
    new_tokens: int = 64,
    vocabulary: int = 32_000,
    jit: bool = False,
    runs: int = 3,
) -> Iterator[dict[str, Any]]:
    """Measures a language model that continues prompts, or an encoder-decoder.

    Args:
        preset: Name of the preset; the model has no dropout.
        batches: Batch sizes.
        source: Tokens of each prompt or source.
        new_tokens: Number of generated tokens.
        vocabulary: Size of the vocabulary, for both sides.
        jit: Whether XLA compiles the generation.
        runs: Timed runs after a warm-up run; the median is reported.

    Yields:
        For each batch size: seconds, and generated tokens per second.

    Raises:
        UserError: The preset's model does not generate, or a number is not positive.
    """
    for number in batches:
        require_positive(batches=number)
    require_positive(source=source, new_tokens=new_tokens, runs=runs)
    require(
        vocabulary > len(SPECIAL_TOKENS),
        f"`vocabulary` must be larger than the {len(SPECIAL_TOKENS)} special tokens.",
        vocabulary=vocabulary,
    )
    keras.utils.set_random_seed(0)
    model = model_class(preset).from_preset(preset, vocabulary, dropout=0.0)
    require(hasattr(model, "step"), "The preset's model does not generate text.", preset=preset)
    run = tf.function(_greedy(model, new_tokens), jit_compile=jit, autograph=False)
    rng = np.random.default_rng(0)
    for batch in batches:
        ids = rng.integers(len(SPECIAL_TOKENS), vocabulary, (batch, source))
        ids = tf.constant(ids, tf.int32)
        seconds = median_seconds(lambda ids=ids: run(ids).numpy(), runs)
        yield {
            "preset": preset,
            "batch": batch,
            "source": source,
            "new_tokens": new_tokens,
            "jit": jit,
            "seconds": round(seconds, 4),
            "tokens_per_second": round(batch * new_tokens / seconds),
        }


def _greedy(model: Any, new_tokens: int) -> Callable:
    def generate(ids):
        if isinstance(model, LanguageModel):
            start, state = model.prefill(ids, max_length=new_tokens)
        else:
            start, state = START_ID, model.initial_state(ids, max_length=new_tokens)
        options = {"max_length": new_tokens, "min_length": new_tokens}
        return greedy_search(model.step, state, start, end_id=END_ID, **options).token_ids

    return generate

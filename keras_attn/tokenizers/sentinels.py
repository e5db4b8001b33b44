"""The tokens that stand for what is missing in a text, as T5 has them."""

import itertools

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.base import Tokenizer
from keras_attn.validation import require


def sentinel_tokens(count: int) -> list[str]:
    """The sentinels in the order of T5's vocabularies, where they come last, the first at the end.

    Args:
        count: How many there are.
    """
    return [_sentinel(number) for number in reversed(range(count))]


def sentinel_ids(tokenizer: Tokenizer) -> np.ndarray:
    """Looks up the sentinels of a tokenizer.

    Args:
        tokenizer: Any.

    Returns:
        Their ids in the order of their numbers, int32 (count,); none where it has none.

    Raises:
        UserError: There are some, and the tokenizer does not know one that is spelled out in a
            text.
    """
    ids = {token: number for number, token in enumerate(tokenizer.vocabulary)}
    names = list(itertools.takewhile(ids.__contains__, map(_sentinel, itertools.count())))
    if not names:
        return np.zeros(0, np.int32)
    found = [ids[name] for name in names]
    read = tokenizer.tokenize(tf.constant(names)).to_list()
    require(
        read == [[number] for number in found],
        "The tokenizer must know a sentinel that is spelled out in a text.",
        sentinel=names[0],
        ids=read[0],
    )
    return np.array(found, np.int32)


def _sentinel(number: int) -> str:
    return f"<extra_id_{number}>"

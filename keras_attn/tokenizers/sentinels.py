"""Sentinel tokens of T5, which replace missing spans of a text."""

import itertools

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.base import Tokenizer
from keras_attn.validation import require


def sentinel_tokens(count: int) -> list[str]:
    """Returns sentinels in the order of T5's vocabularies, which end with the first sentinel.

    Args:
        count: Number of sentinels.

    Examples:
        >>> sentinel_tokens(2)
        ['<extra_id_1>', '<extra_id_0>']
    """
    return [_sentinel(number) for number in reversed(range(count))]


def sentinel_ids(tokenizer: Tokenizer) -> np.ndarray:
    """Looks up the sentinels of a tokenizer.

    Args:
        tokenizer: A tokenizer of any kind.

    Returns:
        Their ids in the order of their numbers, int32 (count,); empty if it has none.

    Raises:
        UserError: The tokenizer has sentinels, but does not recognize them in a text.

    Examples:
        >>> sentinel_ids(CharacterTokenizer("abc")).shape  # has no sentinels
        (0,)
    """
    ids = {token: number for number, token in enumerate(tokenizer.vocabulary)}
    names = list(itertools.takewhile(ids.__contains__, map(_sentinel, itertools.count())))
    if not names:
        return np.zeros(0, np.int32)
    found = [ids[name] for name in names]
    read = tokenizer.tokenize(tf.constant(names)).to_list()
    require(
        read == [[number] for number in found],
        "The tokenizer must recognize a sentinel in a text.",
        sentinel=names[0],
        ids=read[0],
    )
    return np.array(found, np.int32)


def _sentinel(number: int) -> str:
    return f"<extra_id_{number}>"

"""Sets of tokens for each row, as tensors."""

from keras import ops

from keras_attn.tensors import Tensor


def token_set(token_ids: Tensor, counted: Tensor, vocabulary: int) -> Tensor:
    """Finds the tokens of the vocabulary that occur in each row.

    Args:
        token_ids: int32 (rows, length).
        counted: bool (rows, length), False for tokens to ignore.
        vocabulary: Number of tokens.

    Returns:
        bool (rows, vocabulary).
    """
    rows = ops.shape(token_ids)[0]
    # One-dimensional: the place of a token in the flat matrix.
    places = token_ids + ops.arange(rows)[:, None] * vocabulary
    places = ops.reshape(places, (-1, 1))
    counts = ops.reshape(ops.cast(counted, "int32"), (-1,))
    counts = ops.scatter(places, counts, (rows * vocabulary,))
    return ops.reshape(counts, (rows, vocabulary)) > 0

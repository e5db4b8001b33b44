"""Padding of token ids, anywhere in a row."""

from keras import ops

from keras_attn.tensors import Tensor


def padding_last(token_ids: Tensor) -> Tensor:
    """Moves padding to the end of each row; the tokens keep their order.

    Decoder-only models are often given prompts that are padded on the left. Their positions are
    counted from the first token, so padding before or between tokens would shift them.

    Args:
        token_ids: int32 (batch, length), 0 at padding.

    Returns:
        int32 (batch, length).

    Examples:
        >>> padding_last([[0, 0, 5, 6], [5, 0, 6, 0]])
        [[5, 6, 0, 0], [5, 6, 0, 0]]
    """
    token_ids = ops.convert_to_tensor(token_ids)
    return ops.take_along_axis(token_ids, order_with_padding_last(token_ids), axis=1)


def order_with_padding_last(token_ids: Tensor) -> Tensor:
    """Lists the positions of each row's tokens, then those of its padding.

    Args:
        token_ids: int32 (batch, length), 0 at padding.

    Returns:
        int32 (batch, length), a permutation of each row's positions.
    """
    length = ops.shape(token_ids)[1]
    is_padding = ops.cast(ops.equal(token_ids, 0), "int32")
    return ops.argsort(ops.arange(length, dtype="int32") + length * is_padding, axis=1)

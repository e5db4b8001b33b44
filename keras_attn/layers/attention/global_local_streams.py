"""The two sequences of global-local attention: their inputs, their masks and their pairs."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn.ops import masks
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor


class GlobalLocalPieces(NamedTuple):
    """Labels or masks of the pairs in the four pieces of the attention; each may be `None`.

    Attributes:
        local_to_local: Tensor (batch, length, 2 * radius + 1), the keys of a query in their order.
        local_to_global: Tensor (batch, length, globals).
        global_to_local: Tensor (batch, globals, length).
        global_to_global: Tensor (batch, globals, globals).

    Examples:
        >>> GlobalLocalPieces(local_to_global=np.ones((2, 5, 1), bool)).global_to_global is None
        True
    """

    local_to_local: Any = None
    local_to_global: Any = None
    global_to_local: Any = None
    global_to_global: Any = None


class Stream(NamedTuple):
    """A sequence: its inputs, and the masks of its queries and keys."""

    query: Any
    value: Any
    key: Any
    real: Any
    key_mask: Any


def split_stream(stream: Stream, count: int) -> tuple[Stream, Stream]:
    """The first positions of a sequence, and the others."""

    def cut(x, axis):
        if x is None:
            return None
        length = ops.shape(x)[axis]
        few = (min if isinstance(length, int) else ops.minimum)(count, length)
        return part(x, axis, 0, few), part(x, axis, few, length - few)

    # An input in two roles stays one tensor, so that they share a matrix product.
    parts = {id(x): cut(x, 1) for x in stream[:4]}
    key_masks = cut(stream.key_mask, 2)
    return tuple(
        Stream(
            *(x if x is None else parts[id(x)][side] for x in stream[:4]),
            None if key_masks is None else key_masks[side],
        )
        for side in (0, 1)
    )


def pair_mask(key_mask: Tensor, pairs: Any) -> Any:
    """The mask of a piece, which broadcasts to (batch, heads, target, keys), or None."""
    key_mask = None if key_mask is None else ops.expand_dims(key_mask, 2)
    pairs = None if pairs is None else ops.expand_dims(pairs, 1)
    return masks.combine_masks(key_mask, pairs)


def joined_masks(few: Stream, local: Stream) -> tuple:
    """The masks of keys and of queries over global positions and long ones, or None."""
    batch, found = ops.shape(local.query)[0], []
    for name, leading in (("key_mask", (batch, 1)), ("real", (batch,))):
        parts = [(stream.query, getattr(stream, name)) for stream in (few, local)]
        if all(mask is None for _, mask in parts):
            found.append(None)
            continue
        parts = [
            ops.ones((*leading, ops.shape(query)[1]), "bool") if mask is None else mask
            for query, mask in parts
        ]
        found.append(ops.concatenate(parts, axis=-1))
    return tuple(found)


def global_masks(few: Stream, local: Stream, pair_masks: GlobalLocalPieces) -> tuple:
    """Masks over the global positions and the long ones after them; all must allow a pair."""
    found = []
    of_few = pair_mask(few.key_mask, pair_masks.global_to_global)
    if of_few is not None:
        found.append(ops.concatenate([of_few, _ones(of_few, local.query)], axis=-1))
    of_local = pair_mask(local.key_mask, pair_masks.global_to_local)
    if of_local is not None:
        found.append(ops.concatenate([_ones(of_local, few.query), of_local], axis=-1))
    return tuple(found)


def _ones(mask: Tensor, sequence: Any) -> Any:
    return ops.ones((*ops.shape(mask)[:-1], ops.shape(sequence)[1]), dtype="bool")

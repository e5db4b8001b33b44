"""The decoding state of a model: its rows, dtypes, and conversion to loop variables."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.ops.decoding.room import require_room
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import UserError, require

#: `step(token_ids, state, index) -> (logits, state)`.
Step = Callable[[Tensor, dict, Tensor], tuple[Tensor, dict]]


class DecoderState:
    """Properties of a state that do not change during decoding: structure, rows and dtype.

    Args:
        state: `{"source": tree, "hypothesis": tree}` of tensors or None, with one row per source.
            `state["source"]["room"]`, if present, has a row for each possible step.
        max_length: Number of steps of the search.

    Attributes:
        batch: Number of sources, an int if it is known, otherwise a scalar tensor.
        dtype: Dtype of scores: float64 if a leaf is float64, otherwise float32.
        initial: The state, every leaf a tensor.

    Raises:
        UserError: The state has another structure, or not enough room for the steps.
    """

    def __init__(self, state: dict, max_length: TensorLike) -> None:
        require(
            isinstance(state, dict) and set(state) == {"source", "hypothesis"},
            'The state must be a dict of "source" and "hypothesis".',
            state=sorted(state) if isinstance(state, dict) else type(state).__name__,
        )
        self.initial = keras.tree.map_structure(
            lambda leaf: None if leaf is None else ops.convert_to_tensor(leaf), state
        )
        hypothesis = _tensors(self.initial["hypothesis"])
        leaves = hypothesis + _tensors(self.initial["source"])
        require(
            bool(leaves) and len(leaves[0].shape) > 0,
            "The state must contain a tensor with one row per source.",
            shapes=[tuple(leaf.shape) for leaf in leaves[:1]],
        )
        known = {leaf.shape[0] if len(leaf.shape) else 0 for leaf in hypothesis} - {None}
        require(
            len(known) <= 1,
            'The tensors of `state["hypothesis"]` must have one row per source.',
            shapes=[tuple(leaf.shape) for leaf in hypothesis],
        )
        source = self.initial["source"]
        require_room(source.get("room") if isinstance(source, dict) else None, max_length)
        self.batch = ops.shape(leaves[0])[0]
        wide = any(keras.backend.standardize_dtype(leaf.dtype) == "float64" for leaf in leaves)
        self.dtype = "float64" if wide else "float32"

    def flatten(self, state: dict) -> list[Tensor]:
        """Returns the tensors of a state in a fixed order, without None."""
        try:
            keras.tree.assert_same_structure(self.initial, state)
        except (ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"`step` must return a state of the structure it received. Received: {reason}"
            ) from error
        return _tensors(keras.tree.map_structure(lambda _, leaf: leaf, self.initial, state))

    def unflatten(self, tensors: list[Tensor]) -> dict:
        """Returns the state with these tensors, the inverse of `flatten`."""
        remaining = iter(tensors)
        return keras.tree.map_structure(
            lambda leaf: None if leaf is None else next(remaining), self.initial
        )


def first_tokens(start_id: TensorLike, batch: Tensor) -> Tensor:
    """Returns the first input token of each source, int32 (batch,).

    Raises:
        UserError: There is neither one token for all sources nor one for each.
    """
    tokens = ops.convert_to_tensor(start_id, dtype="int32")
    sizes = {size for size in (*tokens.shape, batch) if isinstance(size, int)}
    require(
        len(tokens.shape) < 2 and len(sizes) < 2,
        "`start_id` must be one token, or one for each source.",
        shape=tuple(tokens.shape),
        sources=batch,
    )
    return ops.broadcast_to(tokens, (batch,))


def take_rows(state: dict, rows: Tensor) -> dict:
    """Returns the state with row `rows[i]` of every hypothesis leaf as row `i`."""
    hypothesis = keras.tree.map_structure(
        lambda leaf: None if leaf is None else ops.take(leaf, rows, axis=0), state["hypothesis"]
    )
    return {**state, "hypothesis": hypothesis}


def run_step(
    step: Step, token_ids: Tensor, state: dict, index: TensorLike, rows: Tensor
) -> tuple[Tensor, dict]:
    """Runs a step of the model, and reshapes its logits to the known number of rows.

    Raises:
        UserError: The logits are not a matrix.
    """
    logits, state = step(token_ids, state, index)
    require(
        len(logits.shape) == 2,
        "`step` must return logits of shape (rows, vocabulary).",
        shape=tuple(logits.shape),
    )
    # A model may lose the static number of rows, which loop variables must keep.
    return ops.reshape(logits, (rows, logits.shape[-1] or -1)), state


def _tensors(tree: Any) -> list[Tensor]:
    leaves: list[Tensor] = []
    # In the order of `map_structure`, which on torch is not that of `flatten`.
    keras.tree.map_structure(leaves.append, tree)
    return [leaf for leaf in leaves if leaf is not None]

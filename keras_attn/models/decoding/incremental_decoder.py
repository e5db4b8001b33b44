"""A decoder token by token: the caches of its blocks, and which hypothesis sees what of them."""

from typing import Any

from keras import ops

from keras_attn.models.decoding.encoder_decoder import tokens_of_rows
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.ops import masks
from keras_attn.ops.decoding.cache import (
    ancestor_mask,
    extend_ancestors,
    initial_ancestors,
    is_growing,
    joined,
    parted,
)
from keras_attn.ops.decoding.room import nan_beyond, room, within_room
from keras_attn.ops.padding import padding_last
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


class IncrementalDecoder:
    """Runs a stack of decoder blocks on one new position of each hypothesis.

    Args:
        stack: The decoder, with the projection to its tokens.
        max_length: Greatest number of positions, or `None`.
    """

    def __init__(self, stack: TokenStack, max_length: int | None = None):
        self._stack = stack
        self._max_length = max_length

    def initial_state(
        self,
        batch_size: Any,
        max_length: int | None = None,
        beams: int = 1,
        projected: list | None = None,
    ) -> dict:
        """Makes the state before the first position.

        Args:
            batch_size: Number of sources, a number or a scalar int32 tensor.
            max_length: Number of positions to make room for, or `None` for caches that grow.
            beams: Number of hypotheses of each source.
            projected: What each block attends to of the source, where there is one.

        Returns:
            `{"source": …, "hypothesis": …}`, both with one row for each source.
        """
        require_positive(beams=beams)
        blocks = self._stack.blocks
        caches = [block.initial_cache(batch_size, max_length, beams) for block in blocks]
        source = {
            "projected": projected or [None] * len(blocks),
            "past": None,
            "start": None,
            "room": room(max_length, self._max_length),
            "beams": ops.arange(beams, dtype="int32"),
            "output_kernel": self._stack.projection.output_kernel(),
        }
        hypothesis = {}
        if any(shared is not None for shared, _ in map(parted, caches)):
            hypothesis["ancestors"] = initial_ancestors(batch_size, max_length)
        return _with_caches(source, hypothesis, caches)

    def prefill(self, prompt_ids: Tensor, max_length: int | None, beams: int) -> tuple[Any, dict]:
        """Makes the state after all but the last token of each prompt.

        Args:
            prompt_ids: int32 (batch, length), 0 at padding, anywhere in a row.
            max_length: Number of positions to make room for after those of the state, or `None`.
            beams: Number of hypotheses of each prompt.

        Returns:
            The last token of each prompt, int32 (batch,), and the state, whose step 0 is theirs.
        """
        prompt_ids = padding_last(ops.convert_to_tensor(prompt_ids, dtype="int32"))
        batch, length = ops.shape(prompt_ids)
        left = self._positions_left(prompt_ids.shape[1], max_length)
        state = self.initial_state(batch, max_length, beams)
        start = ops.sum(ops.cast(masks.padding_mask(prompt_ids), "int32"), axis=1) - 1
        start = ops.maximum(start, 0)
        past = ops.arange(length, dtype="int32") < ops.expand_dims(start, 1)  # (batch, length)
        x, caches = self._stack.embedded(prompt_ids), _caches(state)
        for i, block in enumerate(self._stack.blocks):
            x, caches[i] = block.decode_prompt(x, caches[i], past)
        last = ops.take_along_axis(prompt_ids, ops.expand_dims(start, 1), axis=1)[:, 0]
        source = state["source"] | {"past": past, "start": start, "room": room(max_length, left)}
        return last, _with_caches(source, state["hypothesis"], caches)

    def step(self, token_ids: Tensor, state: dict, index: Any) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), with the hypotheses of one source next to each other.
            state: What `initial_state`, `prefill` or the step before returned, its hypothesis part
                with one row for each hypothesis.
            index: Position of the tokens, after a prompt counted from its last token, int32: a
                scalar, or with one hypothesis a source and caches of a fixed length (rows,).

        Returns:
            Logits (rows, vocabulary), and the state with this position added.
        """
        source, hypothesis, caches = state["source"], dict(state["hypothesis"]), _caches(state)
        beams, start = source["beams"].shape[0], source["start"]
        of_source = [source["caches"], source["projected"], start]
        token_ids = tokens_of_rows(token_ids, of_source, beams)
        within = [] if source["room"] is None else [within_room(index, source["room"].shape[0])]
        mask = None
        if "ancestors" in hypothesis:
            growing = any(map(is_growing, filter(None, source["caches"])))
            ancestors = extend_ancestors(hypothesis["ancestors"], beams, index, growing)
            hypothesis["ancestors"] = ancestors
            # A lone hypothesis attends to all that a growing cache holds, padding aside.
            sees_all = growing and beams == 1 and start is None
            mask = None if sees_all else ancestor_mask(ancestors, beams, source["past"])
        position = index if start is None else ops.add(index, ops.repeat(start, beams))
        if start is not None and self._max_length is not None:
            within.append(within_room(position, self._max_length))
        x = self._stack.embedded(ops.expand_dims(token_ids, 1), position)
        x = ops.reshape(x, (-1, beams, x.shape[-1]))  # (sources, beams, features)
        parts = zip(self._stack.blocks, source["projected"], strict=True)
        for i, (block, projected) in enumerate(parts):
            x, caches[i] = block.decode_step(x, caches[i], index, projected, mask)
        x = self._stack.normalized(x)
        x = ops.reshape(x, (-1, x.shape[-1]))  # (rows, features)
        x = nan_beyond(x, *within)
        logits = self._stack.projection.logits(x, source["output_kernel"])
        return logits, _with_caches(source, hypothesis, caches)

    def _positions_left(self, length, max_length):
        """Number of the model's positions from the last of a prompt on, `None` if not known."""
        require(
            length != 0,
            "Prompts must have at least one token; begin from nothing with `initial_state`.",
            prompts=length,
        )
        if length is None or self._max_length is None:
            return None
        require(
            length - 1 + (max_length or 0) <= self._max_length,
            "Prompts and what follows must not be longer than the model's positions.",
            prompts=length,
            max_length=max_length,
            positions=self._max_length,
        )
        return self._max_length - (length - 1)


def _caches(state: dict) -> list:
    """The cache of each block, whether it belongs to a source or to a hypothesis."""
    both = zip(state["source"]["caches"], state["hypothesis"]["caches"], strict=True)
    return [joined(shared, own) for shared, own in both]


def _with_caches(source: dict, hypothesis: dict, caches: list) -> dict:
    """The state of these parts, what all hypotheses of a source share in the source's."""
    parts = list(map(parted, caches))
    return {
        "source": source | {"caches": [shared for shared, _ in parts]},
        "hypothesis": hypothesis | {"caches": [own for _, own in parts]},
    }

"""Reversible blocks whose training memory does not grow with their number."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.layers.blocks.reversible_block import ReversibleBlock, TwoStreamLayer
from keras_attn.layers.pure_call import PureCall
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.autodiff import custom_gradient, vector_jacobian_product, wait_for
from keras_attn.tensors import Tensor
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class ReversibleStack(TwoStreamLayer):
    """Reversible blocks in sequence; training keeps only their output.

    The backward pass computes the inputs of each block from its outputs, from the last block to
    the first, and each part once more. Dropout and masks are those of the forward pass.

    Args:
        blocks: `ReversibleBlock`s; the stack takes them as they are.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        UserError: There is no block, something else among the blocks, or one of them twice.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> blocks = [ReversibleBlock(MultiHeadAttention(2, 4), FeedForward(32)) for _ in range(3)]
        >>> [stream.shape for stream in ReversibleStack(blocks)(x, x)]
        [(2, 5, 8), (2, 5, 8)]

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 3.
    """

    def __init__(self, blocks: Sequence[ReversibleBlock], **kwargs):
        super().__init__(**kwargs)
        self.blocks = list(blocks)
        require(
            self.blocks and all(isinstance(block, ReversibleBlock) for block in self.blocks),
            "`blocks` must be ReversibleBlocks.",
            blocks=self.blocks,
        )
        require(
            len({id(block) for block in self.blocks}) == len(self.blocks),
            "`blocks` must be different layers, for each has weights of its own.",
            blocks=[block.name for block in self.blocks],
        )

    def build(self, first_shape, second_shape=None):
        for block in self.blocks:
            block.build(first_shape)

    def branches(self, attention_mask=None, training=None, use_causal_mask=False):
        options = (attention_mask, training, use_causal_mask)
        return [pair for block in self.blocks for pair in block.branches(*options)]

    def _through(self, branches, first, second, mask, training):
        # Sums in float32 or wider: what the way back subtracts must have been added exactly.
        first, second = (ops.cast(x, computing_dtype(x.dtype)) for x in (first, second))
        if training:
            run = _Reversible([PureCall(layer, branch, mask) for layer, branch in branches])
            first, second, *after = custom_gradient(run.with_gradient)(first, second, *run.values)
            run.assign(after)
        else:
            first, second = super()._through(branches, first, second, mask, training)
        return tuple(ops.cast(x, self.compute_dtype) for x in (first, second))


class _Reversible:
    """Calls in turn, (u, v) -> (v, u + call(v)), and their way back."""

    def __init__(self, calls: list[PureCall]) -> None:
        self._calls = calls
        self._weights = [call.weights() for call in calls]
        self._states = [call.states() for call in calls]
        self.values = keras.tree.flatten([self._weights, self._states])

    def with_gradient(self, u: Tensor, v: Tensor, *others: Any) -> tuple:
        """The outputs with the states after each call, and the function of the gradient."""
        like, after = [self._weights, self._states], []
        weights, states = keras.tree.pack_sequence_as(like, list(others))
        for call, given, before in zip(self._calls, weights, states, strict=True):
            # Else the dropout of all calls would be drawn before the first of them, and kept.
            added, changed = call([v], given, wait_for(before, [v]))
            u, v = v, ops.add(u, added)
            after += changed

        def gradient(*upstream: Any) -> tuple:
            p, q = u, v
            p_grad, q_grad = upstream[:2]
            grads, weight_grads = [], []
            for call, given, before in zip(
                reversed(self._calls), reversed(weights), reversed(states), strict=True
            ):
                # Else all calls would be made again before the first gradient.
                p, q, *before = wait_for([p, q, *before], [p_grad, q_grad, *grads])
                added, pull_back = vector_jacobian_product(
                    lambda x, *given, call=call, before=before: ops.cast(
                        call([x], given, before)[0], x.dtype
                    ),
                    p,
                    *given,
                )
                x_grad, *grads = pull_back(q_grad)
                weight_grads = [*grads, *weight_grads]
                p, q = q - added, p
                p_grad, q_grad = q_grad, p_grad + x_grad
            return (p_grad, q_grad, *weight_grads, *(None for _ in after))

        return (u, v, *after), gradient

    def assign(self, states: Sequence[Any]) -> None:
        """Keeps the states after the calls."""
        states = keras.tree.pack_sequence_as(self._states, list(states))
        for call, after in zip(self._calls, states, strict=True):
            call.assign(after)

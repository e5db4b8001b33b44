"""Base class of layers over two streams that add to each other."""

import keras
from keras import ops

from keras_attn.layers.blocks.block_inputs import read_block_inputs
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.pure_call import mask_of, with_mask


class TwoStreamLayer(CompositeLayer):
    """Branches called in turn, (first, second) -> (second, first + branch(second)).

    A subclass defines `branches`.

    Args:
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        first: Tensor (batch, length, features), of the compute dtype. A mask that Keras propagates
            with it is applied.
        second: Tensor (batch, length, features).
        padding_mask: Boolean (batch, length), `False` at padding; ANDed with the propagated mask.
        attention_mask: Boolean (length, length), (batch, length, length) or
            (batch, heads or 1, length, length), `True` where a position may attend to another. Both
            masks may hold 1 and 0 of any number type instead; other numbers are refused: by an
            error, or where a graph is traced by an output of NaN.
        training: Whether dropout is applied.
        use_causal_mask: Whether a position attends only to itself and those before it.
        mask: Mask (batch, length) that Keras, or a wrapper such as `TimeDistributed`, hands over.

    Returns:
        Both streams, of their shapes.
    """

    def branches(self, attention_mask=None, training=None, use_causal_mask=False) -> list:
        """The layers that change the streams in turn, each with a function that calls it."""
        raise NotImplementedError

    def call(
        self,
        first,
        second,
        padding_mask=None,
        attention_mask=None,
        training=None,
        use_causal_mask=False,
        mask=None,
    ):
        first, attention_mask = read_block_inputs(
            self.compute_dtype, first, mask, padding_mask, attention_mask
        )
        mask = mask_of(first)
        second, _ = read_block_inputs(self.compute_dtype, second, mask, padding_mask)
        branches = self.branches(attention_mask, training, use_causal_mask)
        return self._through(branches, first, second, mask, training)

    def _through(self, branches, first, second, mask, training):
        for _, branch in branches:
            first, second = second, ops.add(first, branch(with_mask(second, mask)))
        return first, second

    def compute_mask(self, first, previous_mask):
        return previous_mask, previous_mask

    def compute_output_spec(self, first, second, *masks, **options):
        return tuple(keras.KerasTensor(first.shape, self.compute_dtype) for _ in range(2))

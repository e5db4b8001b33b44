"""Base class of blocks, which reads their inputs with the masks that limit them."""

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float, without_hidden
from keras_attn.layers.pure_call import mask_of, with_mask
from keras_attn.ops import masks
from keras_attn.tensors import Tensor


class MaskedBlock(CompositeLayer):
    """A block whose calls take masks as Keras' layers do."""

    def _read(
        self,
        inputs: Tensor,
        mask: Tensor = None,
        padding_mask: Tensor = None,
        attention_mask: Tensor = None,
    ) -> tuple:
        """Joins the masks of a call, and hides what they hide.

        Args:
            inputs: Tensor (batch, length, features), or `None`.
            mask: What Keras hands over: the mask that it propagates with the inputs, or which a
                wrapper such as `TimeDistributed` has taken from them; or `None`.
            padding_mask: Mask (batch, length) of the call, or `None`.
            attention_mask: Mask of the call over pairs of positions, or `None`.

        Returns:
            The inputs, 0 at padding, with which Keras propagates `mask` inside the block, and a
            boolean mask over pairs that joins the other two, or `None`. Where a mask of other
            numbers than 0 and 1 is traced the inputs are NaN.

        Raises:
            UserError: A mask holds something else than 0 and 1.
        """
        if inputs is None:
            return None, None
        if mask is None:
            mask = mask_of(inputs)  # which Keras hands over to calls with one tensor alone
        mask, padding_mask, attention_mask, valid = masks.boolean_masks(
            mask=mask, padding_mask=padding_mask, attention_mask=attention_mask
        )
        inputs = as_float(inputs, self.compute_dtype)
        inputs = without_hidden(inputs, masks.combine_masks(mask, padding_mask))
        inputs = masks.unless_refused(inputs, valid)
        return with_mask(inputs, mask), masks.with_padding(attention_mask, padding_mask)

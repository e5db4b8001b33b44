"""The encoder of the Transformer alone, for classification, tagging and embeddings."""

import keras

from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs, read_options
from keras_attn.models.transformer.sizes import TransformerParts, TransformerSizes, greatest_length
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerEncoder(Backbone):
    """A stack of encoder blocks over token ids, with 0 as padding.

    Every position attends to all non-padding positions, before it and after it, or up to itself.

    Args:
        vocabulary_size: Number of tokens.
        attention: Attention layer to build that of every block from, multi-head by default.
        use_causal_mask: Whether a position attends only to itself and those before it.
        **kwargs: Fields of `TransformerSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`.

    Returns:
        Vectors (batch, length, hidden_dim), with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, `num_heads` does not divide `hidden_dim`, or the attention cannot be causal.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = TransformerEncoder(11, **sizes)
        >>> model({"token_ids": ids}).shape
        (2, 4, 8)

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
    """

    sizes = TransformerSizes

    def __init__(
        self,
        vocabulary_size: int,
        *,
        attention: keras.layers.Layer | None = None,
        use_causal_mask: bool = False,
        **kwargs,
    ):
        sizes, dtype, kwargs = read_options(TransformerSizes, kwargs)
        require(
            not use_causal_mask or getattr(attention, "can_be_causal", True),
            "`attention` must support causal masking where `use_causal_mask` is set.",
            attention=type(attention).__name__,
        )
        parts = TransformerParts(sizes, dtype)
        stack = parts.encoder(parts.embedding(vocabulary_size), attention, use_causal_mask)
        inputs = id_inputs("token_ids")
        super().__init__(inputs, stack(inputs["token_ids"]), **kwargs)

        self._take_token_parts(stack, greatest_length(sizes.learned_positions, attention))

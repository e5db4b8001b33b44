"""The Transformer's encoder over sequences of features, such as those of speech or of sensors."""

import keras
from keras import ops

from keras_attn.layers.attached_mask import AttachedMask
from keras_attn.layers.copies import copy_layer
from keras_attn.layers.dense import Dense
from keras_attn.models.backbone import Backbone
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerSizes
from keras_attn.ops import masks
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class FeatureEncoder(Backbone):
    """A stack of encoder blocks over features (batch, length, features), after a front end.

    Every position attends to all that is no padding, before it and after it.

    Args:
        features: Number of features of a position.
        front_end: Layer to build that from which makes vectors of size `hidden_dim` of the
            features, such as `ConvolutionalSubsampling(hidden_dim)`; a projection by default.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks.
        dropout: Share dropped in training of the front end's and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Pre-norm with a norm after the last block, instead of the paper's post-norm.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        absolute_positions: Whether positions are added to the vectors at all; without them
            attention must see distances by itself.
        rotary_positions: Whether attention rotates its queries and keys by their positions as
            well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        attention: Attention layer to build that of every block from, multi-head by default.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"features": float32 (batch, length, features), "padding_mask": bool (batch,
            length)}`, the mask `False` at padding. Without the mask all is real.

    Returns:
        Vectors (batch, length after the front end, hidden_dim), with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, there are learned positions but none are added,
            `num_heads` does not divide `hidden_dim`, or `front_end` gives vectors of another size.

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
        Dong et al., 2018, https://ieeexplore.ieee.org/document/8462506.
    """

    layer_arguments = ("front_end", "attention")
    input_name = "features"
    optional_inputs = ("padding_mask",)

    def __init__(
        self,
        features: int,
        front_end: keras.layers.Layer | None = None,
        num_layers: int = 6,
        hidden_dim: int = 512,
        num_heads: int = 8,
        intermediate_dim: int = 2048,
        key_dim: int | None = None,
        value_dim: int | None = None,
        activation: str = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        norm_first: bool = False,
        learned_positions: int | None = None,
        absolute_positions: bool = True,
        rotary_positions: bool = False,
        recompute: bool = False,
        attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        require_positive(features=features)
        sizes = TransformerSizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=key_dim,
            value_dim=value_dim,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            norm_first=norm_first,
            learned_positions=learned_positions,
            absolute_positions=absolute_positions,
            rotary_positions=rotary_positions,
            recompute=recompute,
            dtype=dtype,
        )

        # === Layers ===
        attach = AttachedMask(dtype=sizes.dtype, name="padding")
        front = copy_layer(front_end or Dense(hidden_dim), "front_end", dtype=sizes.dtype)
        outputs = front.compute_output_shape((None, None, features))[-1]
        require(
            outputs == hidden_dim,
            "`front_end` must give vectors of size `hidden_dim`.",
            front_end=outputs,
            hidden_dim=hidden_dim,
        )
        stack = TokenStack(
            lambda inputs: front(attach(inputs)),
            sizes.positions("positions"),
            sizes.dropout("dropout"),
            sizes.encoder_blocks(attention, "block"),
            sizes.last_norm("norm"),
        )

        # === Functional graph ===
        inputs = {
            "features": keras.Input((None, features), dtype="float32", name="features"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        super().__init__(inputs, stack(list(inputs.values())), name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self.front_end = front
        self.positions = stack.positions
        self.blocks = stack.blocks
        self.norm = stack.norm
        self.max_length = sizes.max_length(attention)
        self._keep_arguments(
            sizes.dtype,
            features=features,
            front_end=front_end,
            attention=attention,
            **sizes.config,
        )

    def _completed(self, inputs):
        return _read(**inputs)


def _read(features, padding_mask=None) -> dict:
    if not isinstance(features, keras.KerasTensor):
        features = ops.convert_to_tensor(features, "float32")
    if padding_mask is None:
        padding_mask = ops.ones_like(features[..., 0], dtype="bool")
    padding_mask, valid = masks.boolean_masks(padding_mask=padding_mask)
    return {"features": masks.unless_refused(features, valid), "padding_mask": padding_mask}

"""BERT and its successors: Transformer encoders with learned positions and segments."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.activations import get_activation
from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.attention.registry import named_attention
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.segment import SegmentEmbedding
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.models.backbone import Backbone
from keras_attn.models.bert.sizes import EncoderSizes
from keras_attn.models.configured_model import id_inputs, id_tensor, read_options
from keras_attn.models.transformer.sizes import greatest_length, share_positions
from keras_attn.validation import require, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class Bert(Backbone):
    """The encoder of Devlin et al., 2019, over token ids with 0 as padding, and its successors.

    Tokens, positions and segments are embedded, summed up and normalized; post-norm blocks follow.
    Every position attends to all non-padding positions. The pooler, a dense layer with tanh over
    the vector of the first token, is applied by `pooled` to what the model returns. RoBERTa,
    DistilBERT, MPNet, ALBERT, ELECTRA, DeBERTa and ModernBERT are the same encoder with other
    values, see the presets.

    Args:
        vocabulary_size: Number of tokens.
        max_length: Greatest length: the number of positions with a learned vector each, where there
            are any.
        num_segments: Number of segments with a learned vector each; 0 for none.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        epsilon: Added to the variance in the normalizations.
        pooler: Whether there is a pooler. It is trained once it is used, see `use_pooler`.
        pooler_activation: Activation of the pooler.
        scale_embedding: Whether embedded tokens are multiplied by the square root of `hidden_dim`.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        attention: Attention layer to build that of every block from, or a list with one for each
            block; multi-head by default. A layer can also be `{"name": …}` with further arguments,
            see `keras_attn.layers.named_attention`.
        **kwargs: Fields of `EncoderSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length), "segment_ids": int32 (batch, length)}`.
            Without "segment_ids", or with `None` for them, all is segment 0. They have no effect
            where there are no segments.

    Returns:
        Vectors (batch, length, hidden_dim), with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), or `num_heads` does not divide
            `hidden_dim`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = Bert(11, **sizes)
        >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids})
        >>> outputs.shape
        (2, 4, 8)

    References:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805.
        Liu et al., 2019, https://arxiv.org/abs/1907.11692 (RoBERTa).
        Sanh et al., 2019, https://arxiv.org/abs/1910.01108 (DistilBERT).
        Lan et al., 2020, https://arxiv.org/abs/1909.11942 (ALBERT).
        Clark et al., 2020, https://arxiv.org/abs/2003.10555 (ELECTRA).
        Song et al., 2020, https://arxiv.org/abs/2004.09297 (MPNet).
        He et al., 2023, https://arxiv.org/abs/2111.09543 (DeBERTa).
        Warner et al., 2024, https://arxiv.org/abs/2412.13663 (ModernBERT).
    """

    optional_inputs = ("segment_ids",)

    sizes = EncoderSizes

    def __init__(
        self,
        vocabulary_size: int,
        *,
        max_length: int = 512,
        num_segments: int = 2,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-12,
        pooler: bool = True,
        pooler_activation: str = "tanh",
        scale_embedding: bool = False,
        recompute: bool = False,
        attention: Any = None,
        **kwargs,
    ):
        require_rate(attention_dropout=attention_dropout)
        sizes, dtype, kwargs = read_options(EncoderSizes, kwargs)

        # === Layers ===
        embedding = TokenEmbedding(
            vocabulary_size,
            sizes.embedding_dim or sizes.hidden_dim,
            scale=scale_embedding,
            embeddings_initializer=_initializer(),
            dtype=dtype,
            name="embedding",
        )
        segments = positions = projection = last_norm = None
        if num_segments:
            segments = SegmentEmbedding(num_segments, _initializer(), dtype=dtype, name="segments")
        if sizes.absolute_positions:
            positions = LearnedPositionEmbedding(
                max_length,
                _initializer(),
                skip_padding=sizes.skip_padding,
                dtype=dtype,
                name="positions",
            )
        make_norm = partial(LayerNormalization, epsilon=epsilon, center=sizes.norm_bias)
        norm = make_norm(dtype=dtype, name="norm")
        embedded_dropout = Dropout(sizes.dropout, dtype=dtype, name="dropout")
        if sizes.embedding_dim:
            projection = Dense(
                sizes.hidden_dim,
                kernel_initializer=_initializer(),
                dtype=dtype,
                name="embedding_projection",
            )
        multi_head = MultiHeadAttention(
            sizes.num_heads,
            sizes.head_dim,
            dropout=attention_dropout,
            kernel_initializer=_initializer(),
        )
        order = sizes.order_of_blocks()
        own_attention = _for_each_block(attention or multi_head, sizes, order[-1] + 1, max_length)
        feed_forward = FeedForward(
            sizes.intermediate_dim,
            sizes.activation,
            gated=sizes.gated,
            use_bias=sizes.feed_forward_bias,
            kernel_initializer=_initializer(),
        )
        blocks = [
            TransformerEncoderBlock(
                layer,
                feed_forward,
                attention_norm=keras.layers.Activation("linear")
                if sizes.norm_first and not i
                else None,
                dropout=sizes.dropout,
                norm_first=sizes.norm_first,
                epsilon=epsilon,
                norm=None if sizes.norm_bias else make_norm(),
                recompute=recompute,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i, layer in enumerate(own_attention)
        ]
        if sizes.share_positions:
            share_positions([block.attention for block in blocks])
        if sizes.norm_first:
            last_norm = make_norm(dtype=dtype, name="last_norm")

        # === Functional graph ===
        inputs = id_inputs("token_ids", "segment_ids")
        x = embedding(inputs["token_ids"])
        x = segments(x, inputs["segment_ids"]) if segments else x
        x = embedded_dropout(norm(positions(x) if positions else x))
        x = projection(x) if projection else x
        for i in order:
            x = blocks[i](x)
        super().__init__(inputs, last_norm(x) if last_norm else x, **kwargs)

        # === Pooler, beside the graph ===
        self.pooler = None
        self._pools = False
        if pooler:
            self.pooler = Dense(
                sizes.hidden_dim,
                activation=get_activation(pooler_activation),
                kernel_initializer=_initializer(),
                dtype=dtype,
                name="pooler",
            )
            self.pooler.build((None, sizes.hidden_dim))
            self.pooler.trainable = False  # it has no gradient, and `fit` would warn

        # === Config ===
        self.hidden_dim = sizes.hidden_dim
        self.embedding = embedding
        self.segments = segments
        self.positions = positions
        self.norm = norm
        self.embedding_projection = projection
        self.blocks = blocks
        self.last_norm = last_norm
        # Quantization goes from block to block, and visits each of them once.
        self._embedded = self._normalized_embedding if len(blocks) == len(order) else None
        self.max_length = greatest_length(max_length, *own_attention)

    def _normalized_embedding(self, token_ids):
        x = self.embedding(token_ids)
        x = self.segments(x, ops.zeros_like(token_ids)) if self.segments else x
        x = self.norm(self.positions(x) if self.positions else x)
        return self.embedding_projection(x) if self.embedding_projection else x

    def _completed(self, inputs):
        if "segment_ids" in inputs:
            return inputs
        token_ids = id_tensor(inputs["token_ids"])
        return {"token_ids": token_ids, "segment_ids": ops.zeros_like(token_ids)}

    @property
    def trainable(self):
        """Whether the weights are to be trained: those of the pooler once it is used."""
        return keras.Model.trainable.fget(self)

    @trainable.setter
    def trainable(self, value):
        keras.Model.trainable.fset(self, value)
        if getattr(self, "pooler", None) is not None and not self._pools:
            self.pooler.trainable = False

    def use_pooler(self):
        """Lets the pooler be trained with the rest, as the first call of `pooled` does.

        Raises:
            UserError: The model was made without a pooler.
        """
        require(self.pooler is not None, "The model has no pooler.", pooler=None)
        if not self._pools:
            self._pools = True
            self.pooler.trainable = self.trainable

    def pooled(self, vectors, mask=None):
        """Applies the pooler.

        Args:
            vectors: What the model returned, (batch, length, hidden_dim).
            mask: Not used: it is the first vector that is pooled.

        Returns:
            A vector for each sequence, (batch, hidden_dim).

        Raises:
            UserError: The model was made without a pooler.
        """
        self.use_pooler()
        first = ops.pad(vectors, [[0, 0], [0, 1], [0, 0]])[:, 0]  # zeros where there is no token
        return self.pooler(first)


def _for_each_block(
    attention: Any, sizes: EncoderSizes, num_blocks: int, max_length: int
) -> list[keras.layers.Layer]:
    """The attention of each block, in which names have become layers."""
    if not isinstance(attention, list | tuple):
        attention = [attention] * num_blocks
    require(
        len(attention) == num_blocks,
        "`attention` must be a layer, or a list with one for each block.",
        attention=[str(getattr(type(layer), "__name__", layer)) for layer in attention],
        blocks=num_blocks,
    )
    named = partial(
        named_attention,
        num_heads=sizes.num_heads,
        key_dim=sizes.head_dim,
        max_length=max_length,
    )
    return [named(**layer) if isinstance(layer, Mapping) else layer for layer in attention]


def _initializer() -> keras.initializers.Initializer:
    return keras.initializers.TruncatedNormal(stddev=0.02)

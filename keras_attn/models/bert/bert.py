"""BERT: a Transformer encoder with learned positions and segments."""

import keras
from keras import ops

from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.segment import SegmentEmbedding
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs, id_tensor, read_options
from keras_attn.models.transformer.sizes import BertSizes, greatest_length
from keras_attn.validation import require, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class Bert(Backbone):
    """The encoder of Devlin et al., 2019, over token ids with 0 as padding.

    Tokens, positions and segments are embedded, summed up and normalized; post-norm blocks follow.
    Every position attends to all non-padding positions. The pooler, a dense layer with tanh over
    the vector of the first token, is applied by `pooled` to what the model returns.

    Args:
        vocabulary_size: Number of tokens.
        max_length: Number of positions with a learned vector each.
        num_segments: Number of segments with a learned vector each.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        epsilon: Added to the variance in the normalizations.
        pooler: Whether there is a pooler. It is trained once it is used, see `use_pooler`.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        attention: Attention layer to build that of every block from, multi-head by default.
        **kwargs: Fields of `BertSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length), "segment_ids": int32 (batch, length)}`.
            Without "segment_ids", or with `None` for them, all is segment 0.

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

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805.
    """

    optional_inputs = ("segment_ids",)

    sizes = BertSizes

    def __init__(
        self,
        vocabulary_size: int,
        *,
        max_length: int = 512,
        num_segments: int = 2,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-12,
        pooler: bool = True,
        recompute: bool = False,
        attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        require_rate(attention_dropout=attention_dropout)
        sizes, dtype, kwargs = read_options(BertSizes, kwargs)

        # === Layers ===
        embedding = TokenEmbedding(
            vocabulary_size,
            sizes.hidden_dim,
            scale=False,
            embeddings_initializer=_initializer(),
            dtype=dtype,
            name="embedding",
        )
        segments = SegmentEmbedding(num_segments, _initializer(), dtype=dtype, name="segments")
        positions = LearnedPositionEmbedding(
            max_length, _initializer(), dtype=dtype, name="positions"
        )
        norm = LayerNormalization(epsilon=epsilon, dtype=dtype, name="norm")
        embedded_dropout = Dropout(sizes.dropout, dtype=dtype, name="dropout")
        own_attention = attention or MultiHeadAttention(
            sizes.num_heads,
            sizes.head_dim,
            dropout=attention_dropout,
            kernel_initializer=_initializer(),
        )
        feed_forward = FeedForward(
            sizes.intermediate_dim, sizes.activation, kernel_initializer=_initializer()
        )
        blocks = [
            TransformerEncoderBlock(
                own_attention,
                feed_forward,
                dropout=sizes.dropout,
                epsilon=epsilon,
                recompute=recompute,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(sizes.num_layers)
        ]

        # === Functional graph ===
        inputs = id_inputs("token_ids", "segment_ids")
        x = segments(embedding(inputs["token_ids"]), inputs["segment_ids"])
        x = embedded_dropout(norm(positions(x)))
        for block in blocks:
            x = block(x)
        super().__init__(inputs, x, **kwargs)

        # === Pooler, beside the graph ===
        self.pooler = None
        self._pools = False
        if pooler:
            self.pooler = Dense(
                sizes.hidden_dim,
                activation="tanh",
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
        self.blocks = blocks
        self._embedded = self._normalized_embedding
        self.max_length = greatest_length(max_length, attention)

    def _normalized_embedding(self, token_ids):
        x = self.segments(self.embedding(token_ids), ops.zeros_like(token_ids))
        return self.norm(self.positions(x))

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

    def pooled(self, vectors):
        """Applies the pooler.

        Args:
            vectors: What the model returned, (batch, length, hidden_dim).

        Returns:
            A vector for each sequence, (batch, hidden_dim).

        Raises:
            UserError: The model was made without a pooler.
        """
        self.use_pooler()
        first = ops.pad(vectors, [[0, 0], [0, 1], [0, 0]])[:, 0]  # zeros where there is no token
        return self.pooler(first)


def _initializer() -> keras.initializers.Initializer:
    return keras.initializers.TruncatedNormal(stddev=0.02)

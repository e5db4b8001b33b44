"""BERT: an encoder of tokens that are told apart by position and by segment."""

import keras
from keras import ops

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.learned_position_embedding import LearnedPositionEmbedding
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.segment_embedding import SegmentEmbedding
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_attn.models.backbone import Backbone
from keras_attn.validation import require, require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class Bert(Backbone):
    """The encoder of Devlin et al., 2019, over token ids with 0 as padding.

    Tokens, positions and segments are embedded, summed up and normalised; post-norm blocks follow.
    Every position attends to all that is no padding. The pooler, a dense layer with tanh over the
    vector of the first token, is applied by `pooled` to what the model returns.

    Args:
        vocabulary_size: Number of tokens.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        max_length: Number of positions with a learned vector each.
        num_segments: Number of segments with a learned vector each.
        activation: Activation in the feed-forward networks; Keras' "gelu" is the exact one.
        dropout: Share dropped in training of the embeddings and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        epsilon: Added to the variance in the normalisations.
        pooler: Whether there is a pooler. It is trained once it is used, see `use_pooler`.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        attention: Attention layer to build that of every block from, multi-head by default.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length), "segment_ids": int32 (batch, length)}`.
            Without "segment_ids", or with `None` for them, all is segment 0.

    Returns:
        Vectors (batch, length, hidden_dim), with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), or `num_heads` does not divide
            `hidden_dim`.

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805.
    """

    layer_arguments = ("attention",)
    optional_inputs = ("segment_ids",)

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 12,
        hidden_dim: int = 768,
        num_heads: int = 12,
        intermediate_dim: int = 3072,
        max_length: int = 512,
        num_segments: int = 2,
        activation: str = "gelu",
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-12,
        pooler: bool = True,
        recompute: bool = False,
        attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim, num_heads=num_heads)
        require_rate(dropout=dropout, attention_dropout=attention_dropout)
        require(
            hidden_dim % num_heads == 0,
            "`num_heads` must divide `hidden_dim`.",
            num_heads=num_heads,
            hidden_dim=hidden_dim,
        )
        dtype = keras.dtype_policies.get(dtype)

        # === Layers ===
        embedding = TokenEmbedding(
            vocabulary_size,
            hidden_dim,
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
        embedded_dropout = Dropout(dropout, dtype=dtype, name="dropout")
        own_attention = attention or MultiHeadAttention(
            num_heads,
            hidden_dim // num_heads,
            dropout=attention_dropout,
            kernel_initializer=_initializer(),
        )
        feed_forward = FeedForward(intermediate_dim, activation, kernel_initializer=_initializer())
        blocks = [
            TransformerEncoderBlock(
                own_attention,
                feed_forward,
                dropout=dropout,
                epsilon=epsilon,
                recompute=recompute,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]

        # === Functional graph ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        segment_ids = keras.Input((None,), dtype="int32", name="segment_ids")
        x = segments(embedding(token_ids), segment_ids)
        x = embedded_dropout(norm(positions(x)))
        for block in blocks:
            x = block(x)
        inputs = {"token_ids": token_ids, "segment_ids": segment_ids}
        super().__init__(inputs, x, name=name, trainable=trainable)

        # === Pooler, beside the graph ===
        self.pooler = None
        self._pools = False
        if pooler:
            self.pooler = Dense(
                hidden_dim,
                activation="tanh",
                kernel_initializer=_initializer(),
                dtype=dtype,
                name="pooler",
            )
            self.pooler.build((None, hidden_dim))
            self.pooler.trainable = False  # without a gradient, of which `fit` would warn

        # === Config ===
        self.hidden_dim = hidden_dim
        self.embedding = embedding
        self.segments = segments
        self.positions = positions
        self.norm = norm
        self.blocks = blocks
        self._embedded = self._normalized_embedding
        limits = (max_length, getattr(attention, "max_length", None) or max_length)
        self.max_length = min(limits)
        self._keep_arguments(
            dtype,
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            max_length=max_length,
            num_segments=num_segments,
            activation=serialize_activation(activation),
            dropout=dropout,
            attention_dropout=attention_dropout,
            epsilon=epsilon,
            pooler=pooler,
            recompute=recompute,
            attention=attention,
        )

    def _normalized_embedding(self, token_ids):
        x = self.segments(self.embedding(token_ids), ops.zeros_like(token_ids))
        return self.norm(self.positions(x))

    def _completed(self, inputs):
        return inputs if "segment_ids" in inputs else _in_one_segment(inputs["token_ids"])

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


def _in_one_segment(token_ids) -> dict:
    if not isinstance(token_ids, keras.KerasTensor):
        token_ids = ops.convert_to_tensor(token_ids, "int32")  # Keras takes no tensor with an array
    return {"token_ids": token_ids, "segment_ids": ops.zeros_like(token_ids)}


def _initializer() -> keras.initializers.Initializer:
    return keras.initializers.TruncatedNormal(stddev=0.02)

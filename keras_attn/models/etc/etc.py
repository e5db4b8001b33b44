"""ETC: an encoder of long texts that are made of units, such as sentences."""

import dataclasses

import keras
from keras import ops

from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.attention.global_local_streams import GlobalLocalPieces
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.blocks.global_local_encoder_block import GlobalLocalEncoderBlock
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs, id_tensor, read_options
from keras_attn.models.transformer.sizes import BertSizes
from keras_attn.ops import masks
from keras_attn.tensors import Tensor
from keras_attn.validation import require_positive, require_rate

# Beside the labels of distances: of a token with its own unit, with another one, and of a unit
# with its own token, with another one.
_UNIT_LABELS = 4


@keras.saving.register_keras_serializable(package="keras_attn")
class ETC(Backbone):
    """An encoder whose tokens see what is near, and everything else by way of global positions.

    Each unit of the text, such as a sentence, has a global position that sees the whole text and
    all other units; labels mark which tokens belong to which unit. Positions are
    relative. Time and memory are linear in the length. Token 0 is padding.

    Args:
        vocabulary_size: Number of tokens.
        radius: How many positions away the farthest token is that a token attends to.
        num_units: Number of global positions; tokens of units from that number on belong to the
            last.
        unit_length: Number of tokens of a unit where no units are given.
        max_distance: From where on distances share a label.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        share_projections: Whether the attention of units and tokens has the same weights.
        norm_first: Pre-norm with a norm after the last block, instead of post-norm.
        **kwargs: Fields of `BertSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length), "unit_ids": int32 (batch, length)}`, the unit
            of each token counted from 0. Without "unit_ids", or with `None` for them, `unit_length`
            tokens after each other are a unit.

    Returns:
        Vectors (batch, length, hidden_dim) of the tokens, with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), or `num_heads` does not divide
            `hidden_dim`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = ETC(11, **sizes, radius=2)
        >>> model({"token_ids": ids}).shape
        (2, 4, 8)

    Reference:
        Ainslie et al., 2020, https://arxiv.org/abs/2004.08483.
    """

    optional_inputs = ("unit_ids",)

    sizes = BertSizes

    def __init__(
        self,
        vocabulary_size: int,
        *,
        radius: int = 84,
        num_units: int = 230,
        unit_length: int = 16,
        max_distance: int = 12,
        attention_dropout: float = 0.1,
        share_projections: bool = True,
        norm_first: bool = False,
        **kwargs,
    ):
        require_positive(num_units=num_units, unit_length=unit_length, max_distance=max_distance)
        require_rate(attention_dropout=attention_dropout)
        sizes, dtype, kwargs = read_options(BertSizes, kwargs)

        # === Layers ===
        self_labels = 2 * max_distance + 1
        embedding = TokenEmbedding(vocabulary_size, sizes.hidden_dim, dtype=dtype, name="embedding")
        # All units begin alike; what belongs to them and their distances distinguish them.
        unit_embedding = TokenEmbedding(
            1, sizes.hidden_dim, mask_zero=False, dtype=dtype, name="unit_embedding"
        )
        embedded_dropout = Dropout(sizes.dropout, dtype=dtype, name="dropout")
        attention = GlobalLocalAttention(
            sizes.num_heads,
            sizes.head_dim,
            radius,
            max_distance=max_distance,
            num_labels=self_labels + _UNIT_LABELS,
            share_projections=share_projections,
            dropout=attention_dropout,
        )
        blocks = [
            GlobalLocalEncoderBlock(
                attention,
                FeedForward(sizes.intermediate_dim, sizes.activation),
                dropout=sizes.dropout,
                norm_first=norm_first,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(sizes.num_layers)
        ]
        norm = LayerNormalization(epsilon=1e-6, dtype=dtype, name="norm") if norm_first else None
        encoder = _Encoder(
            embedding, unit_embedding, embedded_dropout, blocks, norm, num_units, self_labels
        )

        # === Functional graph ===
        inputs = id_inputs("token_ids", "unit_ids")
        tokens, _ = encoder(inputs["token_ids"], inputs["unit_ids"])
        super().__init__(inputs, tokens, **kwargs)

        # === Config ===
        self.hidden_dim = sizes.hidden_dim
        self.unit_length = unit_length
        self.embedding = embedding
        self.unit_embedding = unit_embedding
        self.blocks = blocks
        self.norm = norm
        self._encoder = encoder

    def _completed(self, inputs):
        return inputs if "unit_ids" in inputs else self._in_units(inputs["token_ids"])

    def encode(self, token_ids, unit_ids=None) -> tuple:
        """Encodes tokens and units.

        Args:
            token_ids: int32 (batch, length), 0 at padding.
            unit_ids: int32 (batch, length), see the class.

        Returns:
            Vectors of the tokens (batch, length, hidden_dim) and of the units
            (batch, num_units, hidden_dim).
        """
        inputs = self._in_units(token_ids)
        if unit_ids is not None:
            inputs["unit_ids"] = ops.convert_to_tensor(unit_ids, "int32")
        return self._encoder(inputs["token_ids"], inputs["unit_ids"])

    def _in_units(self, token_ids) -> dict:
        """Inputs whose units are of equal length."""
        token_ids = id_tensor(token_ids)
        place = ops.cumsum(ops.ones_like(token_ids), axis=1) - 1
        return {"token_ids": token_ids, "unit_ids": place // self.unit_length}


@dataclasses.dataclass(frozen=True)
class _Encoder:
    """The layers in the order of their use.

    Attributes:
        embedding: Embeds tokens.
        unit_embedding: Embeds units.
        dropout: Dropout of what is embedded.
        blocks: The blocks.
        norm: Norm after the last block, or `None`.
        num_units: Number of units.
        first_label: The first label that is none of a distance.
    """

    embedding: keras.layers.Layer
    unit_embedding: keras.layers.Layer
    dropout: keras.layers.Layer
    blocks: list
    norm: keras.layers.Layer | None
    num_units: int
    first_label: int

    def __call__(self, token_ids: Tensor, unit_ids: Tensor) -> tuple:
        """Vectors of tokens and units."""
        real = masks.padding_mask(token_ids)
        unit = ops.expand_dims(ops.clip(unit_ids, 0, self.num_units - 1), -1)
        belongs = ops.equal(unit, ops.arange(self.num_units, dtype="int32"))
        belongs = ops.logical_and(belongs, ops.expand_dims(real, -1))  # (batch, length, units)
        there = ops.any(belongs, axis=1)
        labels = GlobalLocalPieces(
            local_to_global=self.first_label + ops.where(belongs, 0, 1),
            global_to_local=self.first_label + 2 + ops.where(ops.swapaxes(belongs, 1, 2), 0, 1),
        )
        tokens = self.dropout(self.embedding(token_ids))
        units = self.dropout(self.unit_embedding(ops.zeros_like(ops.cast(there, "int32"))))
        for block in self.blocks:
            tokens, units = block(tokens, units, real, there, labels)
        if self.norm is not None:
            tokens, units = self.norm(tokens), self.norm(units)
        return tokens, units

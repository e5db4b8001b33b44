"""The encoder-decoder Transformer of "Attention Is All You Need"."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.learned_position_embedding import LearnedPositionEmbedding
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.rotary_embedding import RotaryEmbedding
from keras_attn.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from keras_attn.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attn.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_attn.models.seq2seq_model import (
    Seq2SeqModel,
    id_inputs,
    require_rows,
    token_embeddings,
)
from keras_attn.ops import masks
from keras_attn.ops.decoding_cache import (
    GrowingCache,
    ancestor_mask,
    extend_ancestors,
    initial_ancestors,
    is_shared,
)
from keras_attn.validation import require, require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class Transformer(Seq2SeqModel):
    """An encoder-decoder Transformer over token ids, with 0 as padding.

    The output projection is tied with the target embedding; without a target vocabulary of its
    own the target shares the source's embedding too, as in the paper.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        num_layers: Number of encoder blocks, and of decoder blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks.
        dropout: Share dropped in training where the paper drops: of the embeddings and of each
            part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Pre-norm with a norm after the last block, instead of the paper's post-norm.
        learned_positions: Number of positions with a learned vector each, on either side, instead
            of sinusoids.
        rotary_positions: Whether self-attention rotates its queries and keys by their positions
            as well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        encoder_attention: Attention layer to build the encoder's from, multi-head by default.
        self_attention: Attention layer to build the decoder's self-attention from, likewise.
        cross_attention: Attention layer to build the attention to the source from, likewise.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"source_ids": int32 (batch, source), "target_ids": int32 (batch, target)}`, the
            target beginning with the start id.

    Returns:
        Logits of the next target token at each position, (batch, target, target vocabulary).

    Raises:
        UserError: A size is not positive, or `num_heads` does not divide `hidden_dim`.

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762.
    """

    _layer_arguments = ("encoder_attention", "self_attention", "cross_attention")

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
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
        rotary_positions: bool = False,
        recompute: bool = False,
        encoder_attention: keras.layers.Layer | None = None,
        self_attention: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim, num_heads=num_heads)
        require_rate(dropout=dropout)
        require_rate(attention_dropout=attention_dropout, activation_dropout=activation_dropout)
        require(
            hidden_dim % num_heads == 0 or (key_dim is not None and value_dim is not None),
            "`num_heads` must divide `hidden_dim`.",
            num_heads=num_heads,
            hidden_dim=hidden_dim,
        )
        dtype = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        attention = partial(
            MultiHeadAttention,
            num_heads,
            key_dim or hidden_dim // num_heads,
            value_dim or hidden_dim // num_heads,
            dropout=attention_dropout,
        )
        rotary = RotaryEmbedding() if rotary_positions else None
        feed_forward = FeedForward(intermediate_dim, activation, dropout=activation_dropout)
        block = {
            "feed_forward": feed_forward,
            "dropout": dropout,
            "norm_first": norm_first,
            "recompute": recompute,
            "dtype": dtype,
        }

        # === Layers ===
        source_embedding, target_embedding = token_embeddings(
            vocabulary_size, target_vocabulary_size, hidden_dim, dtype=dtype
        )
        source_positions = _positions(learned_positions, dtype, "source_positions")
        target_positions = _positions(learned_positions, dtype, "target_positions")
        source_dropout = Dropout(dropout, dtype=dtype, name="source_dropout")
        target_dropout = Dropout(dropout, dtype=dtype, name="target_dropout")
        encoder_blocks = [
            TransformerEncoderBlock(
                encoder_attention or attention(relative_positions=rotary),
                name=f"encoder_{i}",
                **block,
            )
            for i in range(num_layers)
        ]
        decoder_blocks = [
            TransformerDecoderBlock(
                self_attention or attention(relative_positions=rotary),
                cross_attention=cross_attention or attention(),
                name=f"decoder_{i}",
                **block,
            )
            for i in range(num_layers)
        ]
        encoder_norm = decoder_norm = None
        if norm_first:
            encoder_norm, decoder_norm = (
                LayerNormalization(epsilon=1e-6, dtype=dtype, name=name)
                for name in ("encoder_norm", "decoder_norm")
            )

        # === Functional graph ===
        inputs = id_inputs()
        source_ids, target_ids = inputs["source_ids"], inputs["target_ids"]
        x = source_dropout(source_positions(source_embedding(source_ids)))
        for encoder_block in encoder_blocks:
            x = encoder_block(x)
        source = encoder_norm(x) if norm_first else x
        x = target_dropout(target_positions(target_embedding(target_ids)))
        for decoder_block in decoder_blocks:
            x = decoder_block(x, source)
        x = decoder_norm(x) if norm_first else x
        logits = target_embedding(x, reverse=True)
        super().__init__(inputs, logits, name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.source_positions = source_positions
        self.target_positions = target_positions
        self.encoder_blocks = encoder_blocks
        self.decoder_blocks = decoder_blocks
        self.encoder_norm = encoder_norm
        self.decoder_norm = decoder_norm
        self.max_length = learned_positions
        self._keep_arguments(
            dtype,
            vocabulary_size=vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=key_dim,
            value_dim=value_dim,
            activation=keras.activations.serialize(keras.activations.get(activation)),
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            norm_first=norm_first,
            learned_positions=learned_positions,
            rotary_positions=rotary_positions,
            recompute=recompute,
            encoder_attention=encoder_attention,
            self_attention=self_attention,
            cross_attention=cross_attention,
        )

    def encode(self, source_ids) -> Any:
        """Encodes source ids, int32 (batch, source), to vectors (batch, source, hidden_dim)."""
        x = self.source_positions(self.source_embedding(source_ids))
        for block in self.encoder_blocks:
            x = block(x)
        return self.encoder_norm(x) if self.encoder_norm else x

    def initial_state(self, source_ids, max_length: int | None = None, beams: int = 1) -> dict:
        """Makes the state from which `step` generates.

        Args:
            source_ids: int32 (batch, source), 0 at padding.
            max_length: Number of target positions to make room for, as JAX and XLA need it;
                `None`, on TensorFlow without XLA, for caches that grow.
            beams: Number of hypotheses of each source, those of a beam search.

        Returns:
            `{"source": …, "hypothesis": …}`, both with one row for each source. The keys and
            values of all hypotheses belong to the source: they are not reordered
            (`keras_attn.ops.decoding_cache`). States of constant size, such as those of linear
            attention, belong to a hypothesis each.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow.
        """
        require_positive(beams=beams)
        encoded = self.encode(source_ids)
        batch_size = ops.shape(source_ids)[0]
        padding_mask = masks.padding_mask(source_ids)
        blocks = self.decoder_blocks
        caches = [block.initial_cache(batch_size, max_length, beams) for block in blocks]
        source = {
            "caches": [cache if is_shared(cache) else None for cache in caches],
            "projected": [block.project_source(encoded, padding_mask) for block in blocks],
            "beams": ops.arange(beams, dtype="int32"),
            "output_kernel": self.target_embedding.output_kernel(),
        }
        hypothesis = {"caches": [None if is_shared(cache) else cache for cache in caches]}
        if any(map(is_shared, caches)):
            hypothesis["ancestors"] = initial_ancestors(batch_size, max_length)
        return {"source": source, "hypothesis": hypothesis}

    def step(self, token_ids, state: dict, index) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), the token at position `index` of each hypothesis; the
                hypotheses of one source stand together.
            state: What `initial_state` or the step before returned, its hypothesis part with one
                row for each hypothesis.
            index: Position of the tokens, int32: a scalar, or with one hypothesis a source and a
                `max_length` one for each row (rows,).

        Returns:
            Logits (rows, target vocabulary), and the state with this position added.
        """
        source, hypothesis = state["source"], dict(state["hypothesis"])
        beams = source["beams"].shape[0]
        require_rows(token_ids, source["projected"], beams)
        caches = [
            own if shared is None else shared
            for shared, own in zip(source["caches"], hypothesis["caches"], strict=True)
        ]
        mask = None
        if "ancestors" in hypothesis:
            growing = any(isinstance(cache, GrowingCache) for cache in caches)
            ancestors = extend_ancestors(hypothesis["ancestors"], beams, index, growing)
            hypothesis["ancestors"] = ancestors
            # A lone hypothesis attends to all that a growing cache holds.
            mask = None if growing and beams == 1 else ancestor_mask(ancestors, beams)
        x = self.target_embedding(ops.expand_dims(token_ids, 1))
        x = self.target_positions(x, start_index=index)
        x = ops.reshape(x, (-1, beams, self.hidden_dim))  # (sources, beams, hidden_dim)
        for i, (block, projected) in enumerate(
            zip(self.decoder_blocks, source["projected"], strict=True)
        ):
            x, caches[i] = block.decode_step(x, caches[i], index, projected, mask)
        x = self.decoder_norm(x) if self.decoder_norm else x
        x = ops.reshape(x, (-1, self.hidden_dim))  # (rows, hidden_dim)
        logits = self.target_embedding.logits(x, source["output_kernel"])
        shared = [cache if is_shared(cache) else None for cache in caches]
        hypothesis["caches"] = [None if is_shared(cache) else cache for cache in caches]
        return logits, {"source": source | {"caches": shared}, "hypothesis": hypothesis}


def _positions(learned_positions, dtype, name):
    if learned_positions is None:
        return SinusoidalPositionEncoding(dtype=dtype, name=name)
    return LearnedPositionEmbedding(learned_positions, dtype=dtype, name=name)

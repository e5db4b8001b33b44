"""Base class of encoder-decoders of blocks: logits from two stacks, and decoding by steps."""

from typing import Any

from keras import ops

from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs
from keras_attn.models.decoding.incremental_decoder import IncrementalDecoder
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.ops import masks
from keras_attn.ops.padding import padding_last


class StackedSeq2Seq(Backbone):
    """A model from source and target ids to logits of the next target token at each position.

    Args:
        encoder: The layers from source ids to vectors.
        decoder: The layers from target ids, which attend to what was encoded.
        max_length: Greatest number of positions, or `None`.
        **kwargs: Further arguments of `Backbone`.

    Call arguments:
        inputs: `{"source_ids": int32 (batch, source), "target_ids": int32 (batch, target)}`, the
            target beginning with the start id; 0 is padding.

    Returns:
        Logits of the next target token at each position, (batch, target, target vocabulary).
    """

    fixed_arguments = (*Backbone.fixed_arguments, "encoder", "decoder", "max_length")

    def __init__(self, encoder: TokenStack, decoder: TokenStack, max_length: int | None, **kwargs):
        # === Functional graph ===
        inputs = id_inputs("source_ids", "target_ids")
        x = decoder(inputs["target_ids"], encoder(inputs["source_ids"]))
        logits = decoder.projection(x, reverse=True)
        super().__init__(inputs, logits, **kwargs)

        self.source_embedding = encoder.embedding
        self.target_embedding = decoder.embedding
        self.source_positions = encoder.positions
        self.target_positions = decoder.positions
        self.encoder_blocks = encoder.blocks
        self.decoder_blocks = decoder.blocks
        self.encoder_norm = encoder.norm
        self.decoder_norm = decoder.norm
        self.max_length = max_length
        self.hidden_dim = decoder.embedding.hidden_dim
        self.output_embedding = decoder.output
        self._encoder = encoder
        self._decoder = IncrementalDecoder(decoder, max_length)

    def encode(self, source_ids) -> Any:
        """Encodes source ids, int32 (batch, source), to vectors (batch, source, hidden_dim)."""
        return self._encoder(source_ids)

    def initial_state(self, source_ids, max_length: int | None = None, beams: int = 1) -> dict:
        """Makes the state from which `step` generates.

        Args:
            source_ids: int32 (batch, source), 0 at padding, anywhere in a row.
            max_length: Number of target positions to make room for, as JAX and XLA need it;
                `None`, on TensorFlow without XLA, for caches that grow.
            beams: Number of hypotheses of each source, those of a beam search.

        Returns:
            `{"source": …, "hypothesis": …}`, both with one row for each source. The keys and
            values of all hypotheses belong to the source: they are not reordered
            (`keras_attn.ops.decoding.cache`). States of constant size, such as those of linear
            attention, belong to a hypothesis each.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow.
        """
        source_ids = padding_last(source_ids)
        encoded = self.encode(source_ids)
        padding_mask = masks.padding_mask(source_ids)
        projected = [block.project_source(encoded, padding_mask) for block in self.decoder_blocks]
        batch_size = ops.shape(source_ids)[0]
        return self._decoder.initial_state(batch_size, max_length, beams, projected)

    def step(self, token_ids, state: dict, index) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), the token at position `index` of each hypothesis; the
                hypotheses of one source are adjacent.
            state: What `initial_state` or the step before returned, its hypothesis part with one
                row for each hypothesis.
            index: Position of the tokens, int32: a scalar, or with one hypothesis a source and a
                `max_length` one for each row (rows,).

        Returns:
            Logits (rows, target vocabulary), and the state with this position added. Beyond the
            `max_length` of the state logits are NaN where the index is traced.

        Raises:
            UserError: The index is known, and beyond the `max_length` of the state.
        """
        return self._decoder.step(token_ids, state, index)

"""Base class of recurrent encoder-decoders: the graph, and decoding step by step."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import BiasedTokenEmbedding, TokenEmbedding
from keras_attn.layers.recurrent.recurrent_decoder import RecurrentDecoder
from keras_attn.layers.recurrent.recurrent_stack import RecurrentStack
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs
from keras_attn.models.decoding.encoder_decoder import token_embeddings, tokens_of_rows
from keras_attn.ops import masks
from keras_attn.ops.padding import padding_last
from keras_attn.renamed import old_attribute
from keras_attn.validation import require, require_positive


class RecurrentModel(Backbone):
    """Token embeddings, an encoder, a decoder and an output projection.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        encoder: The encoder.
        decoder: The decoder, whose outputs have the size of the embeddings.
        decoder_starts_from_encoder: Whether each layer of the decoder starts from what the
            encoder's ended with; otherwise from zeros.
        tie_output: Whether the output projection is the target embedding turned round.
        output_bias: Whether the logits have a bias for each token.
        dropout: Fraction of the decoder's outputs to drop in training.
        dtype: Dtype policy of all layers.
        **kwargs: Further arguments of `Backbone`.
    """

    fixed_arguments = (
        *Backbone.fixed_arguments,
        "encoder",
        "decoder",
        "decoder_starts_from_encoder",
        "output_bias",
    )

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None,
        encoder: RecurrentStack,
        decoder: RecurrentDecoder,
        decoder_starts_from_encoder: bool,
        tie_output: bool,
        output_bias: bool,
        dropout: float,
        dtype: keras.DTypePolicy,
        **kwargs,
    ):
        # === Layers ===
        hidden_dim = decoder.units
        # The encoder gets the padding mask. The decoder needs none: its padding is at the end,
        # which no real token sees, and a masked step costs more.
        source_embedding, target_embedding = token_embeddings(
            vocabulary_size,
            target_vocabulary_size,
            hidden_dim,
            output_bias=output_bias and tie_output,
            mask_zero=False,
            dtype=dtype,
        )
        output_embedding = target_embedding
        if not tie_output:
            kind = BiasedTokenEmbedding if output_bias else TokenEmbedding
            output_embedding = kind(
                target_embedding.vocabulary_size, hidden_dim, dtype=dtype, name="output_embedding"
            )
        output_dropout = Dropout(dropout, dtype=dtype, name="output_dropout")

        # === Functional graph ===
        inputs = id_inputs("source_ids", "target_ids")
        padding_mask = masks.padding_mask(inputs["source_ids"])
        source, ends = encoder(source_embedding(inputs["source_ids"]), mask=padding_mask)
        x = decoder(
            target_embedding(inputs["target_ids"]),
            source=source,
            source_mask=padding_mask,
            initial_states=ends if decoder_starts_from_encoder else None,
        )
        logits = output_embedding(output_dropout(x), reverse=True)
        super().__init__(inputs, logits, dtype=dtype, **kwargs)

        # === What steps need ===
        self.hidden_dim = hidden_dim
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.output_embedding = output_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.decoder_starts_from_encoder = decoder_starts_from_encoder

    def encode(self, source_ids) -> tuple[Any, list]:
        """Encodes source ids, int32 (batch, source).

        Returns:
            Vectors (batch, source, features), and a summary of each layer's last states.
        """
        x = self.source_embedding(source_ids)
        return self.encoder(x, mask=masks.padding_mask(source_ids))

    @property
    def supports_coverage(self) -> bool:
        """Whether `initial_state` can hold a coverage."""
        return self.decoder.supports_coverage

    tells_coverage = old_attribute("tells_coverage", "supports_coverage")

    def initial_state(
        self, source_ids, max_length: int | None = None, beams: int = 1, coverage: bool = False
    ) -> dict:
        """Makes the state from which `step` generates.

        Args:
            source_ids: int32 (batch, source), 0 at padding, anywhere in a row.
            max_length: Not needed: states have the same size at every position.
            beams: Number of hypotheses of each source, those of a beam search.
            coverage: Whether a hypothesis holds as "coverage" how much attention each position of
                the source has had, as `beam_search(coverage_penalty=…)` needs it.

        Returns:
            `{"source": …, "hypothesis": …}`, both with one row for each source.

        Raises:
            UserError: A coverage is asked for, and the decoder's attention gives none.
        """
        require_positive(beams=beams)
        require(
            not coverage or self.supports_coverage,
            "A coverage needs a decoder with additive or Luong attention.",
            coverage=coverage,
        )
        source_ids = padding_last(source_ids)
        source, ends = self.encode(source_ids)
        projected, states = self.decoder.initial_state(
            source,
            source_mask=masks.padding_mask(source_ids),
            initial_states=ends if self.decoder_starts_from_encoder else None,
            coverage=coverage,
        )
        held = {
            "projected": projected,
            "beams": ops.arange(beams, dtype="int32"),
            "output_kernel": self.output_embedding.output_kernel(),
        }
        return {"source": held, "hypothesis": states}

    def step(self, token_ids, state: dict, index=None) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), the next token of each hypothesis; the hypotheses of one
                source are adjacent.
            state: What `initial_state` or the step before returned, its hypothesis part with one
                row for each hypothesis.
            index: Not needed: the states know what came before.

        Returns:
            Logits (rows, target vocabulary), and the state with this position added.
        """
        source = state["source"]
        beams = source["beams"].shape[0]
        token_ids = tokens_of_rows(token_ids, source["projected"], beams)
        x, states = self.decoder.step(
            self.target_embedding(token_ids), source["projected"], state["hypothesis"], beams
        )
        logits = self.output_embedding.logits(x, source["output_kernel"])
        return logits, {"source": source, "hypothesis": states}

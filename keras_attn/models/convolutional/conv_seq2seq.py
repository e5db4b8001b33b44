"""The convolutional encoder-decoder with attention in every layer."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.convolutional.stacks import ConvolutionalDecoder, ConvolutionalEncoder
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs
from keras_attn.models.decoding.encoder_decoder import token_embeddings, tokens_of_rows
from keras_attn.ops import masks
from keras_attn.ops.decoding.room import nan_beyond, room, within_room
from keras_attn.ops.padding import padding_last
from keras_attn.validation import require_positive, require_rate

_EMBEDDING_DEVIATION = 0.1  # the paper's, section 3.5


@keras.saving.register_keras_serializable(package="keras_attn")
class ConvSeq2Seq(Backbone):
    """A convolutional encoder-decoder over token ids, with 0 as padding.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's; without,
            both have one embedding.
        num_layers: Number of the encoder's convolutions.
        decoder_layers: Number of the decoder's; as many as the encoder's by default.
        hidden_dim: Size of a convolution's outputs.
        embedding_dim: Size of the embeddings; `hidden_dim` by default.
        kernel_size: Number of positions that an output of a convolution sees, odd.
        learned_positions: Number of positions with a learned vector each, on either side.
        dropout: Share dropped in training of the embeddings, of each convolution's input and of
            the outputs.
        tie_output: Whether the output projection is the target embedding turned round.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"source_ids": int32 (batch, source), "target_ids": int32 (batch, target)}`, the
            target beginning with the start id.

    Returns:
        Logits of the next target token at each position, (batch, target, target vocabulary).

    Raises:
        UserError: A size or a rate is out of its range, or `kernel_size` is even.

    Examples:
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = ConvSeq2Seq(11, num_layers=2, hidden_dim=8)
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    Reference:
        Gehring et al., 2017, https://arxiv.org/abs/1705.03122.
    """

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        num_layers: int = 4,
        decoder_layers: int | None = None,
        hidden_dim: int = 256,
        embedding_dim: int | None = None,
        kernel_size: int = 3,
        learned_positions: int = 1024,
        dropout: float = 0.1,
        tie_output: bool = False,
        dtype=None,
        **kwargs,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim)
        require_rate(dropout=dropout)
        dtype = keras.dtype_policies.get(dtype)
        attentions, width = decoder_layers or num_layers, embedding_dim or hidden_dim

        # === Layers ===
        # Described, so that each embedding makes one of its own.
        normal = keras.initializers.serialize(
            keras.initializers.RandomNormal(stddev=_EMBEDDING_DEVIATION)
        )
        source_embedding, target_embedding = token_embeddings(
            vocabulary_size,
            target_vocabulary_size,
            width,
            scale=False,
            mask_zero=False,
            embeddings_initializer=normal,
            dtype=dtype,
        )
        output_embedding = target_embedding
        if not tie_output:
            output_embedding = TokenEmbedding(
                target_embedding.vocabulary_size, width, dtype=dtype, name="output_embedding"
            )
        source_positions, target_positions = (
            LearnedPositionEmbedding(learned_positions, normal, dtype=dtype, name=name)
            for name in ("source_positions", "target_positions")
        )
        source_dropout, target_dropout, output_dropout = (
            Dropout(dropout, dtype=dtype, name=f"{place}_dropout")
            for place in ("source", "target", "output")
        )
        convolutions = {"hidden_dim": hidden_dim, "kernel_size": kernel_size, "dropout": dropout}
        encoder = ConvolutionalEncoder(
            num_layers,
            # Every attention sends a gradient back, by keys and by values.
            gradient_scale=1 / (2 * attentions),
            dtype=dtype,
            name="encoder",
            **convolutions,
        )
        decoder = ConvolutionalDecoder(attentions, dtype=dtype, name="decoder", **convolutions)

        # === Functional graph ===
        inputs = id_inputs("source_ids", "target_ids")
        padding_mask = masks.padding_mask(inputs["source_ids"])
        x = source_dropout(source_positions(source_embedding(inputs["source_ids"])))
        key, value = encoder(x, mask=padding_mask)
        x = target_dropout(target_positions(target_embedding(inputs["target_ids"])))
        x = decoder(x, key=key, value=value, source_mask=padding_mask)
        logits = output_embedding(output_dropout(x), reverse=True)
        super().__init__(inputs, logits, dtype=dtype, **kwargs)

        # === What steps need ===
        self.hidden_dim = hidden_dim
        self.max_length = learned_positions
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.output_embedding = output_embedding
        self.source_positions = source_positions
        self.target_positions = target_positions
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, source_ids) -> tuple[Any, Any]:
        """Encodes source ids, int32 (batch, source), to keys and values (batch, source, width)."""
        x = self.source_positions(self.source_embedding(source_ids))
        return self.encoder(x, mask=masks.padding_mask(source_ids))

    def initial_state(self, source_ids, max_length: int | None = None, beams: int = 1) -> dict:
        """Makes the state from which `step` generates.

        Args:
            source_ids: int32 (batch, source), 0 at padding, anywhere in a row.
            max_length: Not needed: a hypothesis keeps as many inputs as its convolutions see. There
                is room for as many tokens as there are learned positions.
            beams: Number of hypotheses of each source, those of a beam search.

        Returns:
            `{"source": …, "hypothesis": …}`, both with one row for each source.
        """
        require_positive(beams=beams)
        source_ids = padding_last(source_ids)
        key, value = self.encode(source_ids)
        source = self.decoder.project_source(key, value, masks.padding_mask(source_ids))
        source |= {
            "room": room(max_length, self.max_length),
            "beams": ops.arange(beams, dtype="int32"),
            "output_kernel": self.output_embedding.output_kernel(),
        }
        return {"source": source, "hypothesis": {"windows": self.decoder.initial_windows(key)}}

    def step(self, token_ids, state: dict, index) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), the token at position `index` of each hypothesis; the
                hypotheses of one source are adjacent.
            state: What `initial_state` or the step before returned, its hypothesis part with one
                row for each hypothesis.
            index: Position of the tokens, int32: a scalar, or one for each row (rows,).

        Returns:
            Logits (rows, target vocabulary), and the state with this position added.
        """
        source = state["source"]
        beams = source["beams"].shape[0]
        token_ids = tokens_of_rows(token_ids, source["attended"], beams)
        within = within_room(index, source["room"].shape[0])
        x = self.target_embedding(ops.expand_dims(token_ids, 1))
        x = nan_beyond(self.target_positions(x, start_index=index)[:, 0], within)
        x, windows = self.decoder.step(x, source, state["hypothesis"]["windows"], beams)
        logits = self.output_embedding.logits(x, source["output_kernel"])
        return logits, {"source": source, "hypothesis": {"windows": windows}}

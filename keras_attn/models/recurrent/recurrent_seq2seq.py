"""Recurrent encoder-decoders with attention, or with a fixed context."""

import keras

from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.layers.attention.luong_attention import LuongAttention
from keras_attn.layers.recurrent.attentive_decoder import AttentiveDecoder
from keras_attn.layers.recurrent.input_feeding_decoder import InputFeedingDecoder
from keras_attn.layers.recurrent.recurrent_decoder import FixedContextDecoder, RecurrentDecoder
from keras_attn.layers.recurrent.recurrent_stack import RecurrentStack
from keras_attn.models.recurrent.recurrent_model import RecurrentModel
from keras_attn.validation import require, require_one_of, require_positive, require_rate

ATTENTIONS = ("additive", "luong")


@keras.saving.register_keras_serializable(package="keras_attn")
class RecurrentSeq2Seq(RecurrentModel):
    """A recurrent encoder-decoder over token ids, with 0 as padding.

    Each layer of the decoder starts from the last states of the encoder's layer; of a
    bidirectional one both directions are side by side, with half the size each. Without
    attention that is all that the decoder knows of the source.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's; without,
            both have one embedding.
        num_layers: Number of recurrent layers of the encoder, and of the decoder.
        hidden_dim: Size of embeddings, of the encoder's outputs and of the decoder's states.
        cell: `"lstm"` or `"gru"`.
        bidirectional: Whether every layer of the encoder reads in both directions.
        attention: `"additive"` (Bahdanau's), `"luong"`, an attention layer to build the model's
            own from, or `None` for the fixed context.
        score: How Luong's attention compares: `"dot"`, `"general"` or `"concat"`.
        input_feeding: Whether the attention is asked by the top layer's state, and what it found
            is fed to the next step, as Luong's; or is asked by the bottom layer's state before the
            step, as Bahdanau's. By default as fits the attention: Bahdanau's for additive
            attention, Luong's for all others.
        intra_attention: How many of their earlier states the encoder's and the decoder's LSTMs
            read (LSTM-Network); `None` for plain ones.
        dropout: Share dropped in training of each recurrent layer's input and of the outputs.
        tie_output: Whether the output projection is the target embedding turned round.
        output_bias: Whether the output projection has a bias for each target token.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"source_ids": int32 (batch, source), "target_ids": int32 (batch, target)}`, the
            target beginning with the start id.

    Returns:
        Logits of the next target token at each position, (batch, target, target vocabulary).

    Raises:
        UserError: A size or a rate is out of its range, a name is unknown, or the arguments
            contradict each other.

    Examples:
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = RecurrentSeq2Seq(11, num_layers=1, hidden_dim=8, attention="luong")
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    References:
        Sutskever et al., 2014, https://arxiv.org/abs/1409.3215 (fixed context).
        Bahdanau et al., 2014, https://arxiv.org/abs/1409.0473.
        Luong et al., 2015, https://arxiv.org/abs/1508.04025.
        Cheng et al., 2016, https://arxiv.org/abs/1601.06733 (intra-attention).
    """

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        num_layers: int = 2,
        hidden_dim: int = 512,
        cell: str = "lstm",
        bidirectional: bool = True,
        attention: str | keras.layers.Layer | None = "additive",
        score: str = "general",
        input_feeding: bool | None = None,
        intra_attention: int | None = None,
        dropout: float = 0.2,
        tie_output: bool = True,
        output_bias: bool = False,
        dtype=None,
        **kwargs,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim)
        require_rate(dropout=dropout)
        require(
            not bidirectional or hidden_dim % 2 == 0,
            "A bidirectional encoder needs an even `hidden_dim`.",
            hidden_dim=hidden_dim,
        )
        dtype = keras.dtype_policies.get(dtype)
        encoder = RecurrentStack(
            cell,
            hidden_dim // 2 if bidirectional else hidden_dim,
            num_layers,
            bidirectional_layers=num_layers if bidirectional else 0,
            intra_attention=intra_attention,
            dropout=dropout,
            dtype=dtype,
            name="encoder",
        )
        decoder = _decoder(
            attention,
            score,
            input_feeding,
            cell=cell,
            units=hidden_dim,
            num_layers=num_layers,
            intra_attention=intra_attention,
            dropout=dropout,
            dtype=dtype,
            name="decoder",
        )
        super().__init__(
            vocabulary_size,
            target_vocabulary_size,
            encoder,
            decoder,
            decoder_starts_from_encoder=True,
            tie_output=tie_output,
            output_bias=output_bias,
            dropout=dropout,
            dtype=dtype,
            **kwargs,
        )


def _decoder(attention, score, input_feeding, **arguments) -> RecurrentDecoder:
    if attention is None:
        require(
            not input_feeding,
            "Without attention there is nothing to feed.",
            attention=attention,
            input_feeding=input_feeding,
        )
        return FixedContextDecoder(**arguments)
    if isinstance(attention, str):
        require_one_of("attention", attention, ATTENTIONS)
    if attention == "additive":
        attention = AdditiveAttention(arguments["units"])
    elif attention == "luong":
        attention = LuongAttention(score)
    if input_feeding is None:
        input_feeding = not isinstance(attention, AdditiveAttention)
    kind = InputFeedingDecoder if input_feeding else AttentiveDecoder
    return kind(attention=attention, **arguments)

"""Google's Neural Machine Translation system."""

import keras

from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.layers.recurrent.attentive_decoder import AttentiveDecoder
from keras_attn.layers.recurrent.recurrent_stack import RecurrentStack
from keras_attn.models.recurrent.recurrent_model import RecurrentModel
from keras_attn.validation import require_positive, require_rate

# The paper's third layer from the bottom, counted from 0.
_RESIDUAL_FROM = 2


@keras.saving.register_keras_serializable(package="keras_attn")
class GNMT(RecurrentModel):
    """GNMT: deep LSTMs with residual connections and one attention, over token ids.

    The bottom layer of the encoder reads in both directions. From the third layer on, in encoder
    and decoder, a layer's input is added to its output. The bottom layer of the decoder asks the
    attention by its output of the step before, and all layers of the decoder read the context. The
    decoder starts from zeros: the paper names no other start.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's; without,
            both have one embedding.
        num_layers: Number of layers of the encoder, and of the decoder.
        hidden_dim: Size of embeddings and of each LSTM.
        attention_units: Size inside the attention's network; `hidden_dim` by default.
        dropout: Fraction of each LSTM's input, and of the outputs, to drop in training.
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
        UserError: A size or a rate is out of its range.

    Examples:
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = GNMT(11, num_layers=2, hidden_dim=8)
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    Reference:
        Wu et al., 2016, https://arxiv.org/abs/1609.08144, section 3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        num_layers: int = 8,
        hidden_dim: int = 1024,
        attention_units: int | None = None,
        dropout: float = 0.2,
        tie_output: bool = False,
        dtype=None,
        **kwargs,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim)
        require_rate(dropout=dropout)
        dtype = keras.dtype_policies.get(dtype)
        arguments = {
            "cell": "lstm",
            "units": hidden_dim,
            "num_layers": num_layers,
            "residual_from": _RESIDUAL_FROM,
            "dropout": dropout,
            "dtype": dtype,
        }
        encoder = RecurrentStack(bidirectional_layers=1, name="encoder", **arguments)
        decoder = AttentiveDecoder(
            attention=AdditiveAttention(attention_units or hidden_dim),
            context_to_all=True,
            name="decoder",
            **arguments,
        )
        super().__init__(
            vocabulary_size,
            target_vocabulary_size,
            encoder,
            decoder,
            decoder_starts_from_encoder=False,
            tie_output=tie_output,
            output_bias=False,
            dropout=dropout,
            dtype=dtype,
            **kwargs,
        )

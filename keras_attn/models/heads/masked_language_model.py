"""The words that belong into gaps, from the vectors of any encoder."""

import keras
from keras import ops

from keras_attn.layers.activations import get_activation, serialize_activation
from keras_attn.layers.dense import Dense
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.embedding.vocabulary_bias import VocabularyBias
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.models.configured_model import id_inputs, id_tensor
from keras_attn.models.heads.encoder_model import EncoderModel
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class MaskedLanguageModel(EncoderModel):
    """Predicts tokens at any positions of texts, those before and those after them in view.

    BERT's head over an encoder's vectors: a dense layer to the size of embedded tokens with an
    activation, a normalization, and the encoder's own token embedding turned round, with a bias for
    each token.

    Args:
        encoder: Model from `{"token_ids": int32 (batch, length)}` to vectors
            (batch, length, features), with its `TokenEmbedding` as `embedding`, as `Bert`. It
            becomes a part of this model.
        activation: Activation of the dense layer; Keras' "gelu" is the exact one.
        epsilon: Added to the variance in the normalization.
        transform_bias: Whether the dense layer has a bias.
        norm_bias: Whether the normalization has one.
        dtype: Dtype policy of what follows the encoder; the encoder's by default.
        **kwargs: Further arguments of `EncoderModel`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length), "positions": int32 (batch, count)}`, 0 at
            padding of the tokens. Without "positions", or with `None` for them, all positions are
            predicted; with them those alone, which costs that much less.

    Returns:
        Logits (batch, count or length, vocabulary).

    Raises:
        UserError: `encoder` is no model, or has no token embedding.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = MaskedLanguageModel(Bert(11, **sizes))
        >>> positions = np.array([[1], [0]])  # of hidden tokens
        >>> model({"token_ids": ids, "positions": positions}).shape
        (2, 1, 11)

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 3.1.
    """

    optional_inputs = ("positions",)

    def __init__(
        self,
        encoder: keras.Model,
        activation: str = "gelu",
        epsilon: float = 1e-12,
        *,
        transform_bias: bool = True,
        norm_bias: bool = True,
        **kwargs,
    ):
        dtype, kwargs = self._read(encoder, kwargs)
        embedding = getattr(encoder, "embedding", None)
        require(
            isinstance(embedding, TokenEmbedding),
            "`encoder` must have a token embedding, from which the logits are computed.",
            encoder=type(encoder).__name__,
        )

        # === Layers ===
        transform = Dense(
            embedding.hidden_dim,
            use_bias=transform_bias,
            activation=get_activation(activation),
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype=dtype,
            name="transform",
        )
        norm = LayerNormalization(
            epsilon=epsilon, center=norm_bias, dtype=dtype, name="transform_norm"
        )
        bias = VocabularyBias(dtype=dtype, name="bias")

        # === Functional graph ===
        inputs = id_inputs("token_ids", "positions")
        vectors = encoder({"token_ids": inputs["token_ids"]})  # (batch, length, features)
        positions = ops.expand_dims(inputs["positions"], -1)
        chosen = ops.take_along_axis(vectors, positions, axis=1)
        logits = bias(embedding(norm(transform(chosen)), reverse=True))
        super().__init__(inputs, logits, encoder, **kwargs)

        # === Config ===
        self.transform = transform
        self.norm = norm
        self.bias = bias
        self.hidden_dim = encoder.hidden_dim
        self.activation = serialize_activation(activation)
        self.epsilon = epsilon

    def _completed(self, inputs):
        if "positions" in inputs:
            return inputs
        token_ids = id_tensor(inputs["token_ids"])
        places = ops.arange(ops.shape(token_ids)[1], dtype="int32")
        return {"token_ids": token_ids, "positions": ops.zeros_like(token_ids) + places}

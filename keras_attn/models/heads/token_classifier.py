"""A class for each token, from the vectors of any encoder."""

import keras

from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.models.heads.encoder_model import TOKEN_IDS, EncoderModel, token_inputs
from keras_attn.validation import require, require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class TokenClassifier(EncoderModel):
    """Projects each of an encoder's vectors to logits over classes.

    Args:
        encoder: Model from `{"token_ids": int32 (batch, length)}` to vectors
            (batch, length, features), as `Bert` or `TransformerEncoder`. It becomes a part of this
            model.
        num_classes: Number of classes.
        dropout: Fraction of the features to drop in training.
        transform: Layer to build what comes before the dropout from, such as `HeadTransform`; none
            by default.
        dtype: Dtype policy of what follows the encoder; the encoder's by default.
        **kwargs: Further arguments of `EncoderModel`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, 0 at padding, and "segment_ids" if the
            encoder has segments; without them all is segment 0.

    Returns:
        Logits (batch, length, num_classes), finite also at padding.

    Raises:
        UserError: `encoder` is no model over token ids, `num_classes` not positive, or `dropout`
            outside [0, 1).

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> encoder = Bert(11, **sizes)
        >>> TokenClassifier(encoder, num_classes=3)({"token_ids": ids}).shape
        (2, 4, 3)

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 5.3.
    """

    def __init__(
        self,
        encoder: keras.Model,
        num_classes: int,
        dropout: float = 0.1,
        *,
        transform: keras.layers.Layer | None = None,
        **kwargs,
    ):
        dtype, kwargs = self._read(encoder, kwargs)
        input_name = getattr(encoder, "input_name", TOKEN_IDS)
        require(
            input_name == TOKEN_IDS,
            "`encoder` must be a model over token ids.",
            encoder=type(encoder).__name__,
            input_name=input_name,
        )
        require_positive(num_classes=num_classes)
        require_rate(dropout=dropout)

        # === Layers ===
        vector_dropout = Dropout(dropout, dtype=dtype, name="vector_dropout")
        own_transform = transform and copy_layer(transform, "transform", dtype=dtype)
        output = Dense(num_classes, dtype=dtype, name="output")

        # === Functional graph ===
        inputs = token_inputs(encoder)
        vectors = encoder(inputs)
        vectors = own_transform(vectors) if own_transform else vectors
        logits = output(vector_dropout(vectors))
        super().__init__(inputs, logits, encoder, **kwargs)

        # === Config ===
        self.num_classes = num_classes
        self.dropout = dropout

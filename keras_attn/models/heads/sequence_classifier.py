"""A class for each sequence, from the vectors of any encoder."""

from typing import Any

import keras

from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.layers.sequence_pooling import SequencePooling
from keras_attn.models.heads.encoder_model import TOKEN_IDS, EncoderModel, token_inputs
from keras_attn.ops import masks
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class SequenceClassifier(EncoderModel):
    """Pools an encoder's vectors and projects them to logits over classes.

    Args:
        encoder: Model to vectors (batch, length, features) from `{"token_ids": int32 (batch,
            length)}`, as `TransformerEncoder`, or from what its attribute `input_name` says, as
            `PatchEncoder` and `FeatureEncoder`. It becomes a part of this model.
        num_classes: Number of classes.
        pooling: "mean" or "max" over the positions that are no padding, "mean_max" for both,
            "first" for the vector at position 0, "first_two" for those at 0 and 1, or "pooler"
            for what an encoder with a pooler, as `Bert`, makes of the first.
        dropout: Fraction of the pooled features to drop in training.
        transform: Layer to build what comes before the dropout from, such as `HeadTransform`; none
            by default.
        dtype: Dtype policy of what follows the encoder; the encoder's by default.
        **kwargs: Further arguments of `EncoderModel`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, 0 at padding, and "segment_ids" if the
            encoder has segments (all is segment 0 without them); or all that the encoder takes.

    Returns:
        Logits (batch, num_classes), finite also for a row of nothing but padding.

    Raises:
        UserError: `encoder` is no model, `num_classes` not positive, `dropout` outside [0, 1), or
            there is no such `pooling`, or no pooler for it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> encoder = TransformerEncoder(11, **sizes)
        >>> SequenceClassifier(encoder, num_classes=3)({"token_ids": ids}).shape
        (2, 3)
    """

    def __init__(
        self,
        encoder: keras.Model,
        num_classes: int,
        pooling: str = "mean",
        dropout: float = 0.1,
        *,
        transform: keras.layers.Layer | None = None,
        **kwargs,
    ):
        dtype, kwargs = self._read(encoder, kwargs)
        require_positive(num_classes=num_classes)

        # === Layers ===
        pooled_dropout = Dropout(dropout, dtype=dtype, name="pooled_dropout")
        own_transform = transform and copy_layer(transform, "transform", dtype=dtype)
        output = Dense(num_classes, dtype=dtype, name="output")

        # === Functional graph ===
        inputs, mask = _inputs_of(encoder)
        if pooling == "pooler":
            has_pooler = getattr(encoder, "pooler", None) is not None
            require(has_pooler, "Such a `pooling` needs an encoder with a pooler.", pooling=pooling)
            pooled = encoder.pooled(encoder(inputs))
        else:
            pool = SequencePooling(pooling, dtype=dtype, name="pool")
            pooled = pool(encoder(inputs), mask=mask)
        pooled = own_transform(pooled) if own_transform else pooled
        logits = output(pooled_dropout(pooled))
        super().__init__(inputs, logits, encoder, **kwargs)

        # === Config ===
        self.num_classes = num_classes
        self.pooling = pooling
        self.dropout = dropout


def _inputs_of(encoder: keras.Model) -> tuple[dict, Any]:
    """What an encoder is called with, and its mask; `None` for the one that it propagates."""
    if getattr(encoder, "input_name", TOKEN_IDS) == TOKEN_IDS:
        inputs = token_inputs(encoder)
        return inputs, masks.padding_mask(inputs[TOKEN_IDS])
    inputs = {
        name: keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=name)
        for name, tensor in encoder.input.items()
    }
    return inputs, None

"""An encoder with what makes one vector of a text: pooling and dense layers."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_attn.layers.activations import get_activation
from keras_attn.layers.dense import Dense
from keras_attn.layers.sequence_pooling import SequencePooling
from keras_attn.models.configured_model import id_inputs
from keras_attn.models.heads.encoder_model import EncoderModel
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class PooledEncoder(EncoderModel):
    """An encoder of texts whose `pooled` pools its vectors and applies dense layers.

    The model itself returns the vectors of the tokens, as its encoder does. An `EmbeddingTask` with
    `pooling="pooler"` calls `pooled` on them.

    Args:
        encoder: Model from `{"token_ids": int32 (batch, length)}` to vectors
            (batch, length, features). It becomes a part of this model.
        pooling: A pooling of `SequencePooling`, or a list of several.
        dense: For each dense layer its `units`, and its `activation` and `use_bias` where they are
            not "tanh" and `True`.
        dtype: Dtype policy of what follows the encoder; the encoder's by default.
        **kwargs: Further arguments of `EncoderModel`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, 0 at padding.

    Returns:
        Vectors (batch, length, features).

    Raises:
        UserError: `encoder` is no model, there is no such `pooling`, or no dense layer.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> encoder = Bert(11, **sizes)
        >>> model = PooledEncoder(encoder, ["first", "mean"], dense=[{"units": 3}])
        >>> vectors = model({"token_ids": ids})
        >>> vectors.shape, model.pooled(vectors, ids != 0).shape
        ((2, 4, 8), (2, 3))

    Reference:
        Reimers and Gurevych, 2019, https://arxiv.org/abs/1908.10084, section 3.
    """

    def __init__(
        self,
        encoder: keras.Model,
        pooling: str | Sequence[str] = "mean",
        dense: Sequence[Mapping[str, Any]] = (),
        **kwargs,
    ):
        dtype, kwargs = self._read(encoder, kwargs)
        require(bool(dense), "`dense` must have at least one layer.", dense=dense)

        # === Functional graph ===
        inputs = id_inputs("token_ids")
        super().__init__(inputs, encoder(inputs), encoder, **kwargs)

        # === Layers beside the graph ===
        self._pool = SequencePooling(pooling, dtype=dtype, name="pool")
        self.pooler = []
        shape = self._pool.compute_output_shape(encoder.output_shape)
        for number, options in enumerate(dense):
            options = {"activation": "tanh"} | dict(options)
            options["activation"] = get_activation(options["activation"])
            layer = Dense(**options, dtype=dtype, name=f"dense_{number}")
            layer.build(shape)
            shape = layer.compute_output_shape(shape)
            self.pooler.append(layer)
        self.features = shape[-1]
        self.hidden_dim = encoder.hidden_dim
        self.use_pooler(False)

    def use_pooler(self, used: bool = True):
        """Lets the dense layers be trained with the rest, as the first call of `pooled` does."""
        for layer in self.pooler:
            layer.trainable = used and self.trainable

    def pooled(self, vectors, mask=None):
        """Pools vectors and applies the dense layers.

        Args:
            vectors: What the model returned, (batch, length, features).
            mask: Boolean (batch, length), `False` at padding.

        Returns:
            A vector for each text, (batch, units of the last layer).
        """
        self.use_pooler()
        pooled = self._pool(vectors, mask=mask)
        for layer in self.pooler:
            pooled = layer(pooled)
        return pooled

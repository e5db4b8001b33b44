"""The Transformer's encoder over sequences of features, such as those of speech or of sensors."""

import keras
from keras import ops

from keras_attn.layers.attached_mask import AttachedMask
from keras_attn.layers.dense import Dense
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import read_options
from keras_attn.models.transformer.sizes import TransformerParts, TransformerSizes, greatest_length
from keras_attn.ops import masks
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class FeatureEncoder(Backbone):
    """A stack of encoder blocks over features (batch, length, features), after a front end.

    Every position attends to all non-padding positions, before it and after it.

    Args:
        features: Number of features of a position.
        front_end: Layer to build that from which makes vectors of size `hidden_dim` of the
            features, such as `ConvolutionalSubsampling(hidden_dim)`; a projection by default.
        attention: Attention layer to build that of every block from, multi-head by default.
        **kwargs: Fields of `TransformerSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"features": float32 (batch, length, features), "padding_mask": bool (batch,
            length)}`, the mask `False` at padding. Without the mask all is real.

    Returns:
        Vectors (batch, length after the front end, hidden_dim), with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, there are learned positions but none are added,
            `num_heads` does not divide `hidden_dim`, or `front_end` gives vectors of another size.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> sound = np.ones((2, 100, 80), "float32")  # (batch, frames, features)
        >>> model = FeatureEncoder(80, **sizes)
        >>> model({"features": sound}).shape
        (2, 100, 8)

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
        Dong et al., 2018, https://ieeexplore.ieee.org/document/8462506.
    """

    input_name = "features"
    optional_inputs = ("padding_mask",)

    sizes = TransformerSizes

    def __init__(
        self,
        features: int,
        front_end: keras.layers.Layer | None = None,
        *,
        attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        require_positive(features=features)
        sizes, dtype, kwargs = read_options(TransformerSizes, kwargs)
        parts = TransformerParts(sizes, dtype)
        attach = AttachedMask(dtype=dtype, name="padding")
        front = copy_layer(front_end or Dense(sizes.hidden_dim), "front_end", dtype=dtype)
        outputs = front.compute_output_shape((None, None, features))[-1]
        require(
            outputs == sizes.hidden_dim,
            "`front_end` must give vectors of size `hidden_dim`.",
            front_end=outputs,
            hidden_dim=sizes.hidden_dim,
        )
        stack = parts.encoder(lambda inputs: front(attach(inputs)), attention)
        inputs = {
            "features": keras.Input((None, features), dtype="float32", name="features"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        super().__init__(inputs, stack(list(inputs.values())), **kwargs)
        self.hidden_dim = sizes.hidden_dim
        self.front_end = front
        self._take_parts(stack)
        self.max_length = greatest_length(sizes.learned_positions, attention)

    def _completed(self, inputs):
        return _read(**inputs)


def _read(features, padding_mask=None) -> dict:
    if not isinstance(features, keras.KerasTensor):
        features = ops.convert_to_tensor(features, "float32")
    if padding_mask is None:
        padding_mask = ops.ones_like(features[..., 0], dtype="bool")
    padding_mask, valid = masks.boolean_masks(padding_mask=padding_mask)
    return {"features": masks.unless_refused(features, valid), "padding_mask": padding_mask}

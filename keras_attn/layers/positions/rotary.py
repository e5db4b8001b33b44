"""Rotary position embedding, as in RoFormer."""

import keras
from keras import ops

from keras_attn.layers.hidden_positions import as_float, of_known_features
from keras_attn.layers.positions.relative_positions import RelativePositions
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.positions import rotate_by_position
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class RotaryEmbedding(RelativePositions):
    """Rotates queries or keys by their positions, so that scores see distances.

    Given to `MultiHeadAttention(relative_positions=…)`, which applies it to both.

    Args:
        max_wavelength: Base of the geometric progression of wavelengths.
        scaling_factor: What positions are divided by: a model trained on n positions attends over
            n times this many (position interpolation).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, heads, length, features) of the compute dtype, features even.
        positions: Tensor (length,), (batch, length) or of a length of 1 for all, int32; counted
            from 0 by default.

    Returns:
        The rotated vectors, (batch, heads, length, features).

    Raises:
        UserError: `max_wavelength` or `scaling_factor` is not above 0, or the number of features
            is odd.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = MultiHeadAttention(2, 4, relative_positions=RotaryEmbedding())
        >>> layer(x, x).shape
        (2, 5, 8)

    References:
        Su et al., 2021, https://arxiv.org/abs/2104.09864, section 3.2.
        Chen et al., 2023, https://arxiv.org/abs/2306.15595 (position interpolation).
    """

    supports_masking = True

    def __init__(self, max_wavelength: float = 10_000.0, scaling_factor: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        for name, value in (("max_wavelength", max_wavelength), ("scaling_factor", scaling_factor)):
            require(value > 0, f"`{name}` must be above 0.", **{name: value})
        self.max_wavelength = max_wavelength
        self.scaling_factor = scaling_factor
        self.features = None

    def require_key_dim(self, key_dim):
        require(
            key_dim % 2 == 0,
            "RotaryEmbedding turns pairs of features: the attention's `key_dim` must be even.",
            key_dim=key_dim,
        )

    def build(self, input_shape=None):
        if input_shape is not None:
            self.features = input_shape[-1]

    def transform(self, query, key, query_positions, key_positions):
        return self(query, positions=query_positions), self(key, positions=key_positions)

    def call(self, inputs, positions=None):
        inputs = of_known_features(as_float(inputs, self.compute_dtype), self.features)
        if positions is None:
            positions = ops.arange(ops.shape(inputs)[2], dtype="int32")
        positions = ops.cast(positions, computing_dtype(inputs.dtype)) / self.scaling_factor
        return rotate_by_position(inputs, positions, self.max_wavelength)

    def compute_output_shape(self, input_shape):
        return input_shape

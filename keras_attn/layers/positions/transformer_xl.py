"""Relative positions that queries look for, as in "Transformer-XL"."""

import keras
from keras import ops

from keras_attn.layers.hidden_positions import as_float
from keras_attn.layers.positions.relative_positions import RelativePositions
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.linear import linear, linear_of_heads
from keras_attn.ops.positions import relative_shift, sinusoidal_positions
from keras_attn.ops.scores import dot_scores
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerXLPositions(RelativePositions):
    """Adds to scores how well the query fits the distance, apart from how well it fits the key.

    A score is (q + u)ᵀ k + (q + v)ᵀ W r: r are the sinusoids of the distance, W is learned, and so
    are u and v, which represent what any query looks for. Given to
    `MultiHeadAttention(relative_positions=…)`.

    Args:
        num_heads: Number of query heads.
        key_dim: Size of each head's query and key.
        max_wavelength: Base of the geometric progression of the sinusoids' wavelengths.
        kernel_initializer: Initializer of W.
        bias_initializer: Initializer of u and v.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, num_heads, target, key_dim).
        key: Tensor (batch, num_heads, source, key_dim); the last query is at the last key.

    Returns:
        The scores by the square root of `key_dim`, (batch, num_heads, target, source), of the
        compute dtype.

    Raises:
        UserError: A size is not positive.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> positions = TransformerXLPositions(num_heads=2, key_dim=4)
        >>> MultiHeadAttention(2, 4, relative_positions=positions)(x, x).shape
        (2, 5, 8)

    Reference:
        Dai et al., 2019, https://arxiv.org/abs/1901.02860, section 3.3 and appendix B.
    """

    adds_bias = True

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_wavelength: float = 10_000.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(num_heads=num_heads, key_dim=key_dim)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.max_wavelength = max_wavelength
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def require_key_dim(self, key_dim):
        require(
            key_dim == self.key_dim,
            "`relative_positions` must have the attention's `key_dim`.",
            relative_positions_key_dim=self.key_dim,
            key_dim=key_dim,
        )

    def build(self, *_):
        width = self.num_heads * self.key_dim
        self.kernel = self.add_weight(
            name="kernel", shape=(width, width), initializer=self.kernel_initializer
        )
        self.content_bias, self.position_bias = (
            self.add_weight(
                name=name,
                shape=(self.num_heads, 1, self.key_dim),
                initializer=separate_initializer(self.bias_initializer, offset),
            )
            for offset, name in enumerate(("content_bias", "position_bias"))
        )

    def transform(self, query, key, query_positions, key_positions):
        return query + ops.cast(self.content_bias, query.dtype), key

    def bias(self, query, query_positions, key_positions):
        dtype = computing_dtype(query.dtype)
        query = ops.cast(query, dtype) + ops.cast(self.position_bias, dtype)
        query = query * self.key_dim**-0.5
        if len(query_positions.shape) == len(key_positions.shape) == 1:
            return self._of_consecutive(query, query_positions, key_positions)
        distances = ops.expand_dims(query_positions, -1) - ops.expand_dims(key_positions, -2)
        keys = self._keys(distances, dtype)  # (batch or 1, target, source, heads, key_dim)
        scores = ops.sum(ops.expand_dims(ops.moveaxis(query, 1, 2), 2) * keys, axis=-1)
        return ops.moveaxis(scores, -1, 1)

    def _of_consecutive(self, query, query_positions, key_positions):
        """One product with the keys of all distances, from the greatest on, shifted row by row."""
        target, source = ops.shape(query)[2], ops.shape(key_positions)[0]
        # Sums of one position each, or of none where the sequence is empty.
        greatest = ops.sum(query_positions[-1:]) - ops.sum(key_positions[:1])
        count = target + source - 1
        count = max(count, 0) if isinstance(count, int) else ops.maximum(count, 0)
        distances = greatest - ops.arange(count, dtype="int32")
        keys = ops.transpose(self._keys(distances, query.dtype), (1, 2, 0))
        return relative_shift(linear_of_heads(query, keys), source)

    def _keys(self, distances, dtype):
        """W r of distances: (*shape of distances, num_heads, key_dim)."""
        width = self.num_heads * self.key_dim
        waves = sinusoidal_positions(distances, width, self.max_wavelength, dtype)
        keys = linear(waves, ops.cast(self.kernel, dtype))
        return ops.reshape(keys, (*ops.shape(distances), self.num_heads, self.key_dim))

    def call(self, query, key):
        query, key = (as_float(x, self.compute_dtype) for x in (query, key))
        target, source = ops.shape(query)[2], ops.shape(key)[2]
        at_key = ops.arange(source, dtype="int32")
        at_query = ops.arange(target, dtype="int32") + (source - target)
        bias = self.bias(query, at_query, at_key)
        scores = dot_scores(*self.transform(query, key, at_query, at_key))
        return ops.cast(scores * self.key_dim**-0.5 + bias, self.compute_dtype)

    def compute_output_spec(self, query, key):
        return keras.KerasTensor((*query.shape[:3], key.shape[2]), self.compute_dtype)

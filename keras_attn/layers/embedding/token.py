"""Token embeddings, tied with the output projection where a model wants it."""

import keras
from keras import ops

from keras_attn.layers.embedding.table import EmbeddingTable
from keras_attn.ops.autodiff import is_float
from keras_attn.ops.integer_product import integer_product, values_now
from keras_attn.validation import require_positive

_LOWEST = -3e4  # which float16 holds, and whose exponential is 0 in every dtype


@keras.saving.register_keras_serializable(package="keras_attn")
class TokenEmbedding(EmbeddingTable):
    """Looks up token vectors, and turned round projects vectors to logits over the tokens.

    The same table serves as input embedding and as output projection; as in the paper, looked-up
    vectors are multiplied by the square root of `hidden_dim`.

    Args:
        vocabulary_size: Number of tokens.
        hidden_dim: Size of a token's vector.
        scale: Whether looked-up vectors are multiplied by `sqrt(hidden_dim)`.
        mask_zero: Whether id 0 is padding, to be masked in the layers that follow.
        predict_zero: Whether id 0 has a logit like the others. Without, it is so low that
            padding gets no probability.
        embeddings_initializer: Initializer of the table; normal with standard deviation
            `hidden_dim ** -0.5` by default, so that scaled vectors have unit variance.
        embeddings_regularizer: Regularizer of the table.
        **kwargs: Arguments of `keras.layers.Embedding`.

    Call arguments:
        inputs: Token ids (batch, length), of any number type; with `reverse`, vectors
            (…, hidden_dim).
        reverse: Whether to project vectors to logits instead of looking up ids.

    Returns:
        Vectors (batch, length, hidden_dim), or logits (…, vocabulary_size), of the compute dtype.

    Raises:
        UserError: A size is not positive.

    Examples:
        >>> embedding = TokenEmbedding(vocabulary_size=100, hidden_dim=8)
        >>> vectors = embedding(np.array([[4, 7, 0]]))  # 0 is padding
        >>> vectors.shape, embedding(vectors, reverse=True).shape
        ((1, 3, 8), (1, 3, 100))

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.4.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        scale: bool = True,
        mask_zero: bool = True,
        predict_zero: bool = True,
        embeddings_initializer=None,
        embeddings_regularizer=None,
        **kwargs,
    ):
        require_positive(vocabulary_size=vocabulary_size, hidden_dim=hidden_dim)
        super().__init__(
            int(vocabulary_size),
            int(hidden_dim),
            embeddings_initializer=embeddings_initializer
            or keras.initializers.RandomNormal(stddev=hidden_dim**-0.5),
            embeddings_regularizer=embeddings_regularizer,
            mask_zero=mask_zero,
            **kwargs,
        )
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.scale = scale
        self.predict_zero = predict_zero
        self.supports_masking = True

    def __call__(self, inputs, reverse=False, **options):
        # Ids may come as floats, as those of a `keras.Input` without a dtype do; masks are of ids.
        if not reverse:
            symbolic = isinstance(inputs, keras.KerasTensor)
            inputs = inputs if symbolic else ops.convert_to_tensor(inputs)
            if is_float(inputs):
                inputs = ops.cast(inputs, "int32")
        return super().__call__(inputs, reverse=reverse, **options)

    def call(self, inputs, reverse=False):
        if reverse:
            return self.logits(inputs, self.output_kernel())
        vectors = self._look_up(inputs)
        if self.scale:
            vectors = ops.multiply(vectors, ops.cast(self.hidden_dim**0.5, vectors.dtype))
        return vectors

    def output_kernel(self):
        """The table turned round, (hidden_dim, vocabulary_size), of the compute dtype.

        A decoding loop makes it once, before its first step.
        """
        if self._has_constant_integers():
            return ops.zeros((self.hidden_dim, 0), self.compute_dtype)  # nothing reads it
        table = self.embeddings
        if self.quantization_mode is not None:
            table = self._look_up(ops.arange(self.vocabulary_size))
        return ops.cast(ops.transpose(table), self.compute_dtype)

    def logits(self, vectors, output_kernel):
        """Projects vectors (…, hidden_dim) to logits by a kernel from `output_kernel()`."""
        vectors = ops.cast(vectors, self.compute_dtype)
        lengths = ops.shape(vectors)[:-1]
        rows = ops.reshape(vectors, (-1, self.hidden_dim))
        if self._has_constant_integers():
            table, scale = values_now([self._embeddings, self.embeddings_scale])
            logits = integer_product(rows, table.T, scale)
        else:
            logits = ops.matmul(self._rounded(rows), output_kernel)
        if not self.predict_zero:
            is_zero = ops.arange(self.vocabulary_size) == 0
            logits = ops.where(is_zero, ops.cast(_LOWEST, logits.dtype), logits)
        return ops.reshape(logits, (*lengths, self.vocabulary_size))

    def _rounded(self, vectors):
        """Vectors as quantized activations hold them; gradients pass through the rounding."""
        default = keras.quantizers.AbsMaxQuantizer() if self.quantization_mode == "int8" else None
        quantizer = keras.quantizers.QuantizationConfig.activation_quantizer_or_default(
            self.quantization_config, default
        )
        if self.quantization_mode is None or quantizer is None:
            return vectors
        numbers, scale = quantizer(vectors, axis=-1)
        rounded = ops.cast(ops.divide(ops.cast(numbers, scale.dtype), scale), vectors.dtype)
        return vectors + ops.stop_gradient(rounded - vectors)

    def compute_mask(self, inputs, mask=None):
        if not self.mask_zero or keras.backend.is_float_dtype(inputs.dtype):
            return None
        return ops.not_equal(inputs, 0)

    def compute_output_spec(self, inputs, reverse=False):
        shape = (*inputs.shape, self.hidden_dim)
        if reverse:
            shape = (*inputs.shape[:-1], self.vocabulary_size)
        return keras.KerasTensor(shape, self.compute_dtype)


class BiasedTokenEmbedding(TokenEmbedding):
    """A `TokenEmbedding` that adds a learned number to the logit of each token."""

    def build(self, input_shape=None):
        super().build(input_shape)
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocabulary_size,), initializer="zeros"
        )

    @property
    def variable_serialization_spec(self):
        spec = super().variable_serialization_spec
        return {mode: [*names, "output_bias"] for mode, names in spec.items()}

    def logits(self, vectors, output_kernel):
        logits = super().logits(vectors, output_kernel)
        return ops.add(logits, ops.cast(self.output_bias, logits.dtype))

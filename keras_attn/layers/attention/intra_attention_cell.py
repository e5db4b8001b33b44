"""An LSTM that attends to its own earlier states, as in "LSTM-Networks for Machine Reading"."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.dense import Dense, built_dense
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import attend_by_scores
from keras_attn.ops.scores import additive_scores
from keras_attn.ops.tanh import tanh
from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class IntraAttentionCell(CompositeLayer):
    """The cell of an LSTM-Network (LSTMN), for `keras.layers.RNN`.

    Where an LSTM has one cell and one hidden state, this cell keeps those of all earlier steps
    and reads averages of them, weighted by additive attention from the input and the average
    that was read before:

        aᵢ = vᵀ tanh(W_h hᵢ + W_x x + W_h̃ h̃)    for the steps i before
        h̃, c̃ = the averages of hᵢ and cᵢ by the softmax of aᵢ
        gates i, f, o and candidate ĉ = those of an LSTM with h̃ in place of h
        c = f c̃ + i ĉ,    h = o tanh(c)

    At the first step both averages are 0.

    Args:
        units: Size of the states.
        max_length: Number of states that the cell keeps, the last ones of a longer sequence.
        attention_units: Size of v; `units` by default.
        kernel_initializer: Initializer of the kernels of the input, and of v.
        recurrent_initializer: Initializer of the kernels of states.
        unit_forget_bias: Whether the bias of the forget gate starts at 1.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, features), one step.
        states: The last h (batch, units); all hidden states (batch, max_length * units), one after
            the other and the latest last; all cells in the same way; 1 where there is a state and
            0 where there is none yet (batch, max_length); the average h̃ (batch, units). All of the
            compute dtype.

    Returns:
        h (batch, units) and the new states.

    Raises:
        UserError: A size is not positive.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = keras.layers.RNN(IntraAttentionCell(16, max_length=5))
        >>> layer(x).shape
        (2, 16)

    Reference:
        Cheng et al., 2016, https://arxiv.org/abs/1601.06733, section 3.1, equations 4 to 8.
    """

    supports_masking = False  # `keras.layers.RNN` masks

    def __init__(
        self,
        units: int,
        max_length: int,
        attention_units: int | None = None,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        unit_forget_bias: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(units=units, max_length=max_length)
        if attention_units is not None:
            require_positive(attention_units=attention_units)
        self.units = units
        self.max_length = max_length
        self.attention_units = attention_units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.unit_forget_bias = unit_forget_bias
        # At padding Keras gives the first state as output, and on JAX masks vectors alone.
        self.state_size = [units, max_length * units, max_length * units, max_length, units]
        self.output_size = units

    def build(self, input_shape):
        features, attention = input_shape[-1], self.attention_units or self.units
        # Input and read state side by side: one product for the attention and the four gates.
        self.input_projection = self._projection("input", features, attention + 4 * self.units, 0)
        self.read_attention = self._projection("read_attention", self.units, attention, 1)
        self.state_attention = self._projection("state_attention", self.units, attention, 2)
        self.recurrent_gates = self._projection("recurrent", self.units, 4 * self.units, 3)
        self.scale = self.add_weight(
            name="scale",
            shape=(attention, 1),
            initializer=separate_initializer(self.kernel_initializer, 4),
        )
        self.bias = self.add_weight(
            name="bias", shape=(4 * self.units,), initializer=self._initialize_bias
        )

    def _projection(self, name, features, units, offset) -> Dense:
        of_input = name == "input"
        initializer = self.kernel_initializer if of_input else self.recurrent_initializer
        initializer = separate_initializer(initializer, offset)
        options = {"kernel_initializer": initializer, "dtype": self.dtype_policy}
        return built_dense(features, units, name=name, **options)

    def _initialize_bias(self, shape, dtype=None):
        bias = ops.zeros(shape, dtype)
        if not self.unit_forget_bias:
            return bias
        forget = ops.ones((self.units,), dtype)
        return ops.concatenate([bias[: self.units], forget, bias[2 * self.units :]])

    def call(self, inputs, states):
        _, *earlier, kept, read = states
        shape = (-1, self.max_length, self.units)
        hidden, cells = (ops.reshape(part, shape) for part in earlier)
        projected = self.input_projection(inputs)
        attention, gates = ops.split(projected, [projected.shape[-1] - 4 * self.units], axis=-1)
        # === Read from the earlier states ===
        query = attention + self.read_attention(read)
        scores = additive_scores(
            ops.expand_dims(query, 1), self.state_attention(hidden), self.scale
        )
        both = ops.concatenate([hidden, cells], axis=-1)
        mask = ops.expand_dims(ops.greater(kept, 0), (1, 2))
        attend = partial(attend_by_scores, ops.expand_dims(scores, 1), mask=mask)
        both = ops.expand_dims(both, 1)
        averages = attend(both)
        record_attention(self, attend, both, mask, pattern={"states": True}, is_step=True)
        read, cell = ops.split(averages[:, 0, 0], 2, axis=-1)
        # === The gates of an LSTM ===
        gates = gates + self.recurrent_gates(read) + self.bias
        enter, forget, candidate, leave = ops.split(gates, 4, axis=-1)
        cell = ops.sigmoid(forget) * cell + ops.sigmoid(enter) * tanh(candidate)
        output = ops.sigmoid(leave) * tanh(cell)
        # === Keep the new state ===
        earlier = [
            ops.concatenate([part[:, self.units :], new], axis=1)
            for part, new in zip(earlier, (output, cell), strict=True)
        ]
        kept = ops.concatenate([kept[:, 1:], ops.ones_like(kept[:, :1])], axis=1)
        return output, [output, *earlier, kept, read]

    def get_initial_state(self, batch_size=None):
        """States before the first step: zeros, for `batch_size` sequences."""
        return [ops.zeros((batch_size, size), self.compute_dtype) for size in self.state_size]

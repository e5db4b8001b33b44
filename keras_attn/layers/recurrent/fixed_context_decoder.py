"""A recurrent decoder without attention, which starts from the encoder's last states."""

import keras

from keras_attn.layers.recurrent.recurrent_decoder import RecurrentDecoder


@keras.saving.register_keras_serializable(package="keras_attn")
class FixedContextDecoder(RecurrentDecoder):
    """Recurrent layers that start from what the encoder's layers ended with, and nothing else.

    Args:
        **kwargs: Arguments of `RecurrentDecoder`.

    Raises:
        UserError: A size is not positive, or `dropout` is outside [0, 1).

    Reference:
        Sutskever et al., 2014, https://arxiv.org/abs/1409.3215, section 2; Cho et al. (2014),
        https://arxiv.org/abs/1406.1078, have the decoder read the context at every step as well.
    """

    def __init__(self, cell: str, units: int, num_layers: int, **kwargs):
        super().__init__(cell, units, num_layers, **kwargs)
        self.stack = self._stack(num_layers)

    def build(self, inputs_shape):
        self.stack.build(inputs_shape)

    def call(self, inputs, source=None, source_mask=None, initial_states=None, training=None):
        # Nothing is masked: padding is at the end, where no real token sees it.
        return self.stack(inputs, initial_states=initial_states, training=training)[0]

    def initial_state(self, source, source_mask=None, initial_states=None, coverage=False):
        return {}, self.stack.start(self._summaries(source, initial_states))

    def step(self, inputs, projected, states, beams=1):
        return self.stack.step(inputs, states)

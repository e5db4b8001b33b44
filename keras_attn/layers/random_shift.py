"""Random shifts of images in training, so that a model does not depend on exact positions."""

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float
from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class RandomShift(CompositeLayer):
    """Moves each image up or down and left or right, in training alone.

    Both distances are drawn from -most to most, all equally probable. What comes in at an edge is
    that edge, again and again.

    Args:
        most: Greatest distance, in pixels.
        seed: Seed of the random numbers, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Images (batch, height, width, channels), of the compute dtype.
        training: Whether images are moved.

    Returns:
        A tensor of the shape of the inputs.

    Raises:
        UserError: `most` is not positive.

    Examples:
        >>> images = np.ones((2, 8, 8, 3), "float32")
        >>> RandomShift(most=2)(images, training=True).shape
        (2, 8, 8, 3)
    """

    supports_masking = False

    def __init__(self, most: int, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        require_positive(most=most)
        self.most = most
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs, training=None):
        inputs = as_float(inputs, self.compute_dtype)
        if not training:
            return inputs
        x = ops.einsum("bij,bjwc->biwc", self._from_where(inputs, axis=1), inputs)
        return ops.einsum("bij,bhjc->bhic", self._from_where(inputs, axis=2), x)

    def _from_where(self, images, axis: int):
        """One-hot (batch, size, size): the place that each place along an axis is taken from."""
        batch, size = ops.shape(images)[0], ops.shape(images)[axis]
        shape = (batch, 1)
        distances = keras.random.randint(shape, -self.most, self.most + 1, seed=self.seed_generator)
        places = ops.clip(ops.arange(size, dtype="int32") + distances, 0, size - 1)
        equal = ops.equal(ops.expand_dims(places, -1), ops.arange(size, dtype="int32"))
        return ops.cast(equal, images.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

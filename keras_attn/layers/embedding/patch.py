"""Images as sequences of embedded patches."""

import keras
from keras import ops

from keras_attn.layers.configuration import ConfiguredLayer
from keras_attn.layers.dense import Dense
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class PatchEmbedding(ConfiguredLayer, Dense):
    """Cuts images into patches and projects each to a vector.

    The patches follow each other row by row, and so do the pixels of a patch, each with all its
    channels: the layer is a convolution whose stride is its kernel's size.

    Args:
        patch_size: Height and width of a patch in pixels, one number where they are equal.
        hidden_dim: Size of a patch's vector.
        use_bias: Whether a bias is added.
        kernel_initializer: Initializer of the kernel (pixels · channels of a patch, hidden_dim).
        kernel_regularizer: Regularizer of the kernel.
        **kwargs: Arguments of `keras.layers.Dense`, without its activation.

    Call arguments:
        inputs: Images (batch, height, width, channels), of any type of numbers; computed with in
            the compute dtype.
        training: Whether a gradient is asked for.

    Returns:
        Vectors (batch, patches, hidden_dim), of the compute dtype.

    Raises:
        UserError: A size is not positive, or the patch size does not divide the images' size.

    Examples:
        >>> images = np.ones((2, 8, 8, 3), "float32")
        >>> PatchEmbedding(patch_size=4, hidden_dim=16)(images).shape
        (2, 4, 16)

    Reference:
        Dosovitskiy et al., 2021, https://arxiv.org/abs/2010.11929, section 3.1, equation 1.
    """

    fixed_arguments = ("units", "activation")

    def __init__(
        self,
        patch_size: int | tuple[int, int],
        hidden_dim: int,
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        kernel_regularizer=None,
        **kwargs,
    ):
        require_positive(hidden_dim=hidden_dim)
        super().__init__(
            int(hidden_dim),
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            kernel_regularizer=kernel_regularizer,
            **kwargs,
        )
        self.patch_size = checked_size("patch_size", patch_size)
        self.hidden_dim = hidden_dim
        self.supports_masking = False

    def build(self, input_shape):
        height, width = both_sides(self.patch_size)
        super().build((None, None, height * width * input_shape[-1]))
        self.input_spec = None  # of the patches, not of the images

    def call(self, inputs, training=None):
        return super().call(self._patches(inputs), training)

    def quantized_call(self, inputs, training=None):
        """Embeds images with a quantized kernel; arguments as those of `call`."""
        return super().quantized_call(self._patches(inputs), training=training)

    def _patches(self, inputs):
        """Images to their patches, (batch, patches, pixels · channels of a patch)."""
        patch_height, patch_width = both_sides(self.patch_size)
        batch, height, width, channels = ops.shape(inputs)
        self._check(inputs.shape[1:3])
        rows, columns = height // patch_height, width // patch_width
        x = ops.cast(inputs, self.compute_dtype)
        x = ops.reshape(x, (batch, rows, patch_height, columns, patch_width, channels))
        x = ops.transpose(x, (0, 1, 3, 2, 4, 5))  # (batch, rows, columns, …)
        return ops.reshape(x, (batch, rows * columns, patch_height * patch_width * channels))

    def _check(self, image_size) -> None:
        require(
            all(
                size is None or size % part == 0
                for size, part in zip(image_size, both_sides(self.patch_size), strict=True)
            ),
            "`patch_size` must divide the height and the width of the images.",
            patch_size=self.patch_size,
            height=image_size[0],
            width=image_size[1],
        )

    def compute_output_shape(self, input_shape):
        self._check(input_shape[1:3])
        known = None not in input_shape[1:3]
        patches = number_of_patches(input_shape[1:3], self.patch_size) if known else None
        return (input_shape[0], patches, self.hidden_dim)


def checked_size(name: str, size: int | tuple[int, int]) -> int | list[int]:
    """A size of two sides, or of one where both are equal, as JSON has it.

    Raises:
        UserError: It is neither a positive number nor two of them.
    """
    if isinstance(size, list | tuple):
        require(len(size) == 2, f"`{name}` must be one number or two.", **{name: size})
        require_positive(**{f"{name}[{side}]": length for side, length in enumerate(size)})
        return list(size)
    require_positive(**{name: size})
    return size


def both_sides(size: int | list[int]) -> tuple[int, int]:
    """Height and width of a size."""
    return tuple(size) if isinstance(size, list | tuple) else (size, size)


def number_of_patches(image_size, patch_size) -> int:
    """How many patches an image has, whose size the patch size divides."""
    (height, width), (patch_height, patch_width) = both_sides(image_size), both_sides(patch_size)
    return (height // patch_height) * (width // patch_width)

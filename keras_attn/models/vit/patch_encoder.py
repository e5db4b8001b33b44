"""The Transformer's encoder over the patches of images."""

import dataclasses
import functools

import keras

from keras_attn.layers.embedding.class_token import ClassToken
from keras_attn.layers.embedding.patch import (
    PatchEmbedding,
    both_sides,
    checked_size,
    number_of_patches,
)
from keras_attn.layers.random_shift import RandomShift
from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import read_options
from keras_attn.models.transformer.sizes import TransformerParts, TransformerSizes
from keras_attn.validation import require_positive


@dataclasses.dataclass(frozen=True, kw_only=True)
class PatchSizes(TransformerSizes):
    """`TransformerSizes` with the defaults of the Vision Transformer's base model."""

    num_layers: int = 12
    hidden_dim: int = 768
    num_heads: int = 12
    intermediate_dim: int = 3072
    activation: str = "gelu"
    norm_first: bool = True


@keras.saving.register_keras_serializable(package="keras_attn")
class PatchEncoder(Backbone):
    """The Vision Transformer: a stack of encoder blocks over an image's patches.

    Every position attends to all others.

    Args:
        image_size: Height and width of the images in pixels, one number where they are equal.
        patch_size: Height and width of a patch in pixels, one number where they are equal. It
            divides the image size.
        channels: Number of an image's channels.
        class_token: Whether a learned vector is put before the patches, for a classifier that
            takes the first vector of the outputs (`pooling="first"`).
        distillation_token: Whether another learned vector is between the class token and the
            patches (DeiT).
        random_shift: Most pixels by which images are moved at random in training.
        learned_positions: Whether each position has a learned vector, instead of sinusoids.
        attention: Attention layer to build that of every block from, multi-head by default.
        **kwargs: Fields of `PatchSizes`, and further arguments of `Backbone`.

    Call arguments:
        inputs: `{"images": float32 (batch, height, width, channels)}`, usually from -1 to 1.

    Returns:
        Vectors (batch, patches, hidden_dim), and one more before them for each of the tokens.

    Raises:
        UserError: A size is not positive, `patch_size` does not divide `image_size`, or
            `num_heads` does not divide `hidden_dim`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> images = np.ones((2, 8, 8, 3), "float32")
        >>> model = PatchEncoder(image_size=8, patch_size=4, **sizes)
        >>> model({"images": images}).shape
        (2, 5, 8)

    References:
        Dosovitskiy et al., 2021, https://arxiv.org/abs/2010.11929, section 3.1.
        Touvron et al., 2021, https://arxiv.org/abs/2012.12877, section 4 (distillation token).
    """

    input_name = "images"

    sizes = PatchSizes

    def __init__(
        self,
        image_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        channels: int = 3,
        class_token: bool = True,
        random_shift: int = 0,
        *,
        distillation_token: bool = False,
        learned_positions: bool = True,
        attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        image_size = checked_size("image_size", image_size)
        patch_size = checked_size("patch_size", patch_size)
        require_positive(channels=channels)
        first = int(class_token) + int(distillation_token)
        length = number_of_patches(image_size, patch_size) + first
        sizes, dtype, kwargs = read_options(PatchSizes, kwargs)
        learned = length if learned_positions and sizes.absolute_positions else None
        sizes = dataclasses.replace(sizes, learned_positions=learned)
        parts = TransformerParts(sizes, dtype)
        embedding = [PatchEmbedding(patch_size, sizes.hidden_dim, dtype=dtype, name="patches")]
        if random_shift:
            embedding.insert(0, RandomShift(random_shift, dtype=dtype, name="random_shift"))
        if distillation_token:
            embedding.append(ClassToken(dtype=dtype, name="distillation_token"))
        if class_token:
            embedding.append(ClassToken(dtype=dtype, name="class_token"))
        stack = parts.encoder(
            lambda images: functools.reduce(lambda x, layer: layer(x), embedding, images), attention
        )
        images = keras.Input((*both_sides(image_size), channels), dtype="float32", name="images")
        super().__init__({"images": images}, stack(images), **kwargs)
        self.image_size = both_sides(image_size)
        self.channels = channels
        self.hidden_dim = sizes.hidden_dim
        self.embedding = embedding
        self._take_parts(stack)
        self.length = length

"""The Transformer's encoder over the patches of images."""

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
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerSizes
from keras_attn.validation import require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class PatchEncoder(Backbone):
    """The Vision Transformer: a stack of encoder blocks over an image's patches.

    Every position attends to all others.

    Args:
        image_size: Height and width of the images in pixels, one number where they are equal.
        patch_size: Height and width of a patch in pixels, likewise; it divides the image size.
        channels: Number of an image's channels.
        class_token: Whether a learned vector stands before the patches, for a classifier that
            takes the first vector of the outputs (`pooling="first"`).
        random_shift: Most pixels by which images are moved at random in training.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks; Keras' "gelu" is the exact one.
        dropout: Share dropped in training of the embedded patches and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Pre-norm with a norm after the last block, as in the paper, or post-norm.
        learned_positions: Whether each position has a learned vector, instead of sinusoids.
        absolute_positions: Whether positions are added to the embedded patches at all; without
            them `learned_positions` says nothing.
        rotary_positions: Whether attention rotates its queries and keys by their positions as
            well (Su et al., 2021).
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        attention: Attention layer to build that of every block from, multi-head by default.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"images": float32 (batch, height, width, channels)}`, usually from -1 to 1.

    Returns:
        Vectors (batch, patches, hidden_dim), and one more before them for the class token.

    Raises:
        UserError: A size is not positive, `patch_size` does not divide `image_size`, or
            `num_heads` does not divide `hidden_dim`.

    Reference:
        Dosovitskiy et al., 2021, https://arxiv.org/abs/2010.11929, section 3.1.
    """

    layer_arguments = ("attention",)
    input_name = "images"

    def __init__(
        self,
        image_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = 16,
        channels: int = 3,
        class_token: bool = True,
        random_shift: int = 0,
        num_layers: int = 12,
        hidden_dim: int = 768,
        num_heads: int = 12,
        intermediate_dim: int = 3072,
        key_dim: int | None = None,
        value_dim: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        norm_first: bool = True,
        learned_positions: bool = True,
        absolute_positions: bool = True,
        rotary_positions: bool = False,
        recompute: bool = False,
        attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        image_size = checked_size("image_size", image_size)
        patch_size = checked_size("patch_size", patch_size)
        require_positive(channels=channels)
        length = number_of_patches(image_size, patch_size) + bool(class_token)
        sizes = TransformerSizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=key_dim,
            value_dim=value_dim,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            norm_first=norm_first,
            learned_positions=length if learned_positions and absolute_positions else None,
            absolute_positions=absolute_positions,
            rotary_positions=rotary_positions,
            recompute=recompute,
            dtype=dtype,
        )

        # === Layers ===
        embedding = [PatchEmbedding(patch_size, hidden_dim, dtype=sizes.dtype, name="patches")]
        if random_shift:
            embedding.insert(0, RandomShift(random_shift, dtype=sizes.dtype, name="random_shift"))
        if class_token:
            embedding.append(ClassToken(dtype=sizes.dtype, name="class_token"))
        stack = TokenStack(
            lambda images: functools.reduce(lambda x, layer: layer(x), embedding, images),
            sizes.positions("positions"),
            sizes.dropout("dropout"),
            sizes.encoder_blocks(attention, "block"),
            sizes.last_norm("norm"),
        )

        # === Functional graph ===
        images = keras.Input((*both_sides(image_size), channels), dtype="float32", name="images")
        super().__init__({"images": images}, stack(images), name=name, trainable=trainable)

        # === Config ===
        self.image_size = both_sides(image_size)
        self.channels = channels
        self.hidden_dim = hidden_dim
        self.embedding = embedding
        self.positions = stack.positions
        self.blocks = stack.blocks
        self.norm = stack.norm
        self.length = length
        arguments = sizes.config | {"learned_positions": learned_positions}
        self._keep_arguments(
            sizes.dtype,
            image_size=image_size,
            patch_size=patch_size,
            channels=channels,
            class_token=class_token,
            random_shift=random_shift,
            attention=attention,
            **arguments,
        )

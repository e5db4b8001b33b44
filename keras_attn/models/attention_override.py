"""A preset's attention of a sequence to itself, replaced by a mechanism that is named."""

import inspect
from collections.abc import Mapping
from typing import Any

import keras

from keras_attn.layers.attention.registry import named_attention
from keras_attn.models import get_preset, model_class
from keras_attn.validation import require

# Arguments that the model and its texts determine, and where users set them.
_SIZES = {
    "num_heads": "`model.num_heads`",
    "key_dim": "`model.hidden_dim` and `model.num_heads`",
    "max_length": "`data.max_source_length`",
}
# Arguments of models that are attention of a sequence to itself.
_ARGUMENTS = ("attention", "encoder_attention", "self_attention")


def attention_override(
    preset: str, sizes: Mapping[str, Any], attention: Mapping[str, Any], max_length: int
) -> dict[str, keras.layers.Layer]:
    """Makes the attention layers of a preset's model from the name of a mechanism.

    Args:
        preset: Name of the preset.
        sizes: Arguments of the model that differ from the preset's.
        attention: `{"name": …}` with arguments of the mechanism's layer.
        max_length: Greatest length of a sequence.

    Returns:
        Arguments of the model.

    Raises:
        UserError: There is no such mechanism, a size of the model is among its arguments, or the
            model has no attention to choose.
    """
    options, sizes = dict(attention), {**get_preset(preset).config, **sizes}
    require("name" in options, "`attention` must have a name.", attention=options)
    for name, setting in _SIZES.items():
        require(
            name not in options,
            f"`attention.{name}` follows from the model and its texts: set {setting}.",
            **{name: options.get(name)},
        )
    parameters = inspect.signature(model_class(preset)).parameters
    chosen = [name for name in _ARGUMENTS if name in parameters]
    require(
        bool(chosen) and "num_heads" in sizes,
        "The preset's model has no attention that could be another mechanism.",
        preset=preset,
    )
    heads = sizes["num_heads"]
    key_dim = sizes.get("key_dim") or sizes["hidden_dim"] // heads
    layer = named_attention(options.pop("name"), heads, key_dim, max_length, **options)
    return dict.fromkeys(chosen, layer)

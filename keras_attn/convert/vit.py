"""Conversion of Hugging Face's ViT and DeiT."""

from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.checkpoints import require_values
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.encoders.heads import label_names
from keras_attn.convert.files.configuration import (
    CONFIG,
    make_model,
    read_activation,
    read_arguments,
)
from keras_attn.convert.files.json_files import named_in_errors, read_optional_object
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.layers.embedding.patch import both_sides
from keras_attn.models import PatchEncoder, SequenceClassifier
from keras_attn.tasks import ImageClassificationTask
from keras_attn.validation import require, require_one_of

_ARGUMENTS = {
    "num_hidden_layers": ("num_layers", 12),
    "hidden_size": ("hidden_dim", 768),
    "num_attention_heads": ("num_heads", 12),
    "intermediate_size": ("intermediate_dim", 3072),
    "image_size": ("image_size", 224),
    "patch_size": ("patch_size", 16),
    "num_channels": ("channels", 3),
    "hidden_dropout_prob": ("dropout", 0.0),
    "attention_probs_dropout_prob": ("attention_dropout", 0.0),
    "layer_norm_eps": ("epsilon", 1e-12),
}
_PREPROCESSOR = "preprocessor_config.json"
# Architectures and the beginning of the names of their tensors.
_ARCHITECTURES = {"ViTForImageClassification": "vit.", "DeiTForImageClassification": "deit."}


def convert_vit(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a folder of a ViT or a DeiT that classifies images.

    The normalization of pixels in `preprocessor_config.json` becomes a part of the first layer.

    Args:
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        An `ImageClassificationTask`. Images are resized to the model's size as the task does it.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    path = folder / CONFIG
    arguments = read_arguments(
        path, config, config["model_type"], _ARGUMENTS, {"qkv_bias": True}, ["hidden_act"]
    )
    activation = read_activation(path, config, "hidden_act", "gelu")
    with named_in_errors(path):
        (architecture,) = config.get("architectures") or [None]
        require_one_of("architectures", architecture, _ARCHITECTURES)
        labels = label_names(config)
    tensors = SafetensorsFolder(folder)
    is_deit = architecture.startswith("DeiT")
    encoder = make_model(
        PatchEncoder,
        arguments | {"distillation_token": is_deit},
        path,
        _ARGUMENTS,
        tensors,
        activation=activation,
    )
    model = SequenceClassifier(encoder, len(labels), "first", arguments["dropout"])
    weights = _weights(model, is_deit)
    weights.fill(model, tensors, lambda name: name.removeprefix(_ARCHITECTURES[architecture]))
    notes = _normalize(folder / _PREPROCESSOR, encoder)
    return Conversion(ImageClassificationTask(model, labels), notes)


def _weights(model: SequenceClassifier, is_deit: bool) -> WeightMap:
    weights, encoder = WeightMap(), model.encoder
    patches, *tokens = encoder.embedding
    height, width = both_sides(patches.patch_size)
    name = "embeddings.patch_embeddings.projection"
    shape = (patches.units, encoder.channels, height, width)
    weights.copy_reshaped(patches.kernel, f"{name}.weight", shape, (2, 3, 1, 0))
    weights.copy(patches.bias, f"{name}.bias")
    names = ["distillation_token", "cls_token"] if is_deit else ["cls_token"]
    for layer, name in zip(tokens, names, strict=True):
        weights.copy_reshaped(layer.vector, f"embeddings.{name}", (1, 1, *layer.vector.shape))
    positions = encoder.positions.embeddings
    weights.copy_reshaped(positions, "embeddings.position_embeddings", (1, *positions.shape))
    for number, block in enumerate(encoder.blocks):
        layer = f"encoder.layer.{number}"
        (projection,) = block.attention.projections
        roles = (f"{layer}.attention.attention.{role}" for role in projection.heads)
        weights.copy_linear(projection, *roles)
        weights.copy_linear(block.attention.output_projection, f"{layer}.attention.output.dense")
        weights.copy_norm(block.attention_residual.norm, f"{layer}.layernorm_before")
        weights.copy_linear(block.feed_forward.intermediate, f"{layer}.intermediate.dense")
        weights.copy_linear(block.feed_forward.output_projection, f"{layer}.output.dense")
        weights.copy_norm(block.feed_forward_residual.norm, f"{layer}.layernorm_after")
    weights.copy_norm(encoder.norm, "layernorm")
    weights.copy_linear(model.get_layer("output"), "classifier")
    return weights


def _normalize(path: Path, encoder: PatchEncoder) -> tuple[str, ...]:
    """Makes the first layer take pixels from -1 to 1 instead of normalized ones."""
    config = read_optional_object(path)
    require_values(path, config, do_rescale=True)
    factor = config.get("rescale_factor", 1 / 255)
    require(
        isinstance(factor, float) and abs(factor * 255 - 1) < 1e-6,
        f"{path}: `rescale_factor` must be 1 / 255.",
        rescale_factor=factor,
    )
    mean, deviation = config.get("image_mean", 0.5), config.get("image_std", 0.5)
    if not config.get("do_normalize", True):
        mean, deviation = 0.0, 1.0
    patches, channels = encoder.embedding[0], encoder.channels
    try:
        mean = np.broadcast_to(np.array(mean, "float64"), channels)
        deviation = np.broadcast_to(np.array(deviation, "float64"), channels)
    except ValueError:
        mean = deviation = np.zeros(channels)
    require(
        bool((deviation > 0).all()),
        f"{path}: `image_mean` and `image_std` must have a number for each channel, above 0.",
        image_mean=config.get("image_mean"),
        image_std=config.get("image_std"),
    )
    # (pixel + 1) / 2 is what the checkpoint subtracts the mean from.
    kernel = patches.kernel.numpy().reshape(-1, channels, patches.units).astype("float64")
    bias = patches.bias.numpy() + np.einsum("pcu,c->u", kernel, (0.5 - mean) / deviation)
    kernel = kernel * (0.5 / deviation)[:, None]
    patches.kernel.assign(kernel.reshape(-1, patches.units))
    patches.bias.assign(bias)
    if config.get("do_center_crop"):
        return (f"{path}: images are not cropped here, but resized to the model's size.",)
    return ()

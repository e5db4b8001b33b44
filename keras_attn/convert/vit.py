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
from keras_attn.layers.embedding.class_token import ClassToken
from keras_attn.layers.embedding.patch import PatchEmbedding, both_sides
from keras_attn.models import PatchEncoder, SequenceClassifier
from keras_attn.tasks import ImageClassificationTask
from keras_attn.validation import is_integer, require

ARGUMENTS = {
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
"""Arguments of `PatchEncoder` by the key of their value, with its default."""

PREPROCESSOR = "preprocessor_config.json"
VIT, DEIT = "ViTForImageClassification", "DeiTForImageClassification"
TAUGHT = "DeiTForImageClassificationWithTeacher"
ARCHITECTURES = {
    VIT: ("vit.", "first"),
    DEIT: ("deit.", "first"),
    TAUGHT: ("deit.", "first_two"),
    "ViTModel": ("", "first"),
    "DeiTModel": ("", "first"),
}
"""The beginning of the names of an architecture's tensors, and which vectors its head reads."""

_HEADLESS = ("ViTModel", "DeiTModel")
_NEW_HEAD = (
    "{path}: {architecture} has no classifier. That of the task is new and untrained: "
    "`keras-attn train --init` makes one for the labels of images."
)

INTERPOLATIONS = {1: "lanczos3", 2: "bilinear", 3: "bicubic"}
"""Interpolations by their numbers in Pillow."""


def convert_vit(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a folder of a ViT or a DeiT.

    The normalization of pixels in `preprocessor_config.json` becomes a part of the first layer.

    Args:
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        An `ImageClassificationTask`, which resizes and cuts images as `preprocessor_config.json`
        says. Where the checkpoint has no classifier, a new one has two labels, which a note says.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    path = folder / CONFIG
    arguments = read_arguments(
        path, config, config["model_type"], ARGUMENTS, {"qkv_bias": True}, ["hidden_act"]
    )
    activation = read_activation(path, config, "hidden_act", "gelu")
    with named_in_errors(path):
        (architecture,) = config.get("architectures") or [None]
        require(
            architecture in ARCHITECTURES,
            f"Supported `architectures` are {', '.join(ARCHITECTURES)}.",
            architectures=architecture,
        )
        is_headless = architecture in _HEADLESS
        labels = ["LABEL_0", "LABEL_1"] if is_headless else label_names(config)
    tensors = SafetensorsFolder(folder)
    prefix, pooling = ARCHITECTURES[architecture]
    encoder = make_model(
        PatchEncoder,
        arguments | {"distillation_token": config["model_type"] == "deit"},
        path,
        ARGUMENTS,
        tensors,
        activation=activation,
    )
    model = SequenceClassifier(encoder, len(labels), pooling, arguments["dropout"])
    weights = vit_weights(model, has_head=not is_headless)
    weights.fill(model, tensors, lambda name: name.removeprefix(prefix))
    _normalize(folder / PREPROCESSOR, encoder)
    resizing = _resizing(folder / PREPROCESSOR, encoder)
    note = _NEW_HEAD.format(path=path, architecture=architecture)
    task = ImageClassificationTask(model, labels, **resizing)
    return Conversion(task, (note,) if is_headless else ())


def vit_weights(model: SequenceClassifier, has_head: bool = True) -> WeightMap:
    """Maps the weights of a classifier on a `PatchEncoder`.

    Args:
        model: The classifier.
        has_head: Whether the checkpoint has a classifier, too, or else perhaps a pooler.
    """
    weights, encoder = WeightMap(), model.encoder
    is_deit = encoder.get_config()["distillation_token"]
    *_, patches = [one for one in encoder.embedding if isinstance(one, PatchEmbedding)]
    tokens = [one for one in encoder.embedding if isinstance(one, ClassToken)]
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
    output = model.get_layer("output")
    if not has_head:
        weights.keep(output.kernel)
        weights.keep(output.bias)
        weights.ignore(r"pooler\..*")
    elif model.get_config()["pooling"] == "first_two":
        weights.copy_mean(output, "cls_classifier", "distillation_classifier")
    else:
        weights.copy_linear(output, "classifier")
    return weights


def _normalize(path: Path, encoder: PatchEncoder) -> None:
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


def _resizing(path: Path, encoder: PatchEncoder) -> dict[str, Any]:
    """How images become as large as the model's."""
    config = read_optional_object(path)
    crops = bool(config.get("do_center_crop", False))
    number = config.get("resample", 3 if crops else 2)
    require(
        number in INTERPOLATIONS,
        f"{path}: `resample` must be the number of an interpolation: {INTERPOLATIONS}.",
        resample=number,
    )
    resizing = {"interpolation": INTERPOLATIONS[number]}
    if not crops:
        return resizing
    cut = _sides(config.get("crop_size", encoder.image_size))
    require(
        cut == encoder.image_size,
        f"{path}: `crop_size` must be the size of the model's images.",
        crop_size=cut,
        image_size=encoder.image_size,
    )
    return resizing | {"resize_to": _sides(config.get("size", 256))}


def _sides(size: Any) -> Any:
    """Height and width, or the length of the shorter side."""
    if isinstance(size, dict):
        return size.get("shortest_edge") or (size.get("height"), size.get("width"))
    return (size, size) if is_integer(size) else size

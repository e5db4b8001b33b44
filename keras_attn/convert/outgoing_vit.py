"""Image classifiers as folders of transformers."""

import dataclasses
from typing import Any

from keras_attn.convert.files.configuration import CONFIG
from keras_attn.convert.files.outgoing import Outgoing
from keras_attn.convert.files.written_config import (
    labels_of,
    require_counterparts,
    without_counterpart,
    written_activation,
    written_arguments,
    written_as,
)
from keras_attn.convert.vit import (
    ARCHITECTURES,
    ARGUMENTS,
    DEIT,
    INTERPOLATIONS,
    PREPROCESSOR,
    TAUGHT,
    VIT,
    vit_weights,
)
from keras_attn.models.vit.patch_encoder import PatchSizes
from keras_attn.tasks import ImageClassificationTask
from keras_attn.validation import is_integer


def outgoing_vit(task: ImageClassificationTask) -> Outgoing:
    """Describes the folder of an image classifier.

    Args:
        task: The task.

    Raises:
        UserError: The task has something without a counterpart.
    """
    model: Any = task.backbone
    encoder = model.encoder
    sizes, pooling = encoder.get_config(), model.get_config()["pooling"]
    is_deit = sizes["distillation_token"]
    architecture = (TAUGHT if pooling == "first_two" else DEIT) if is_deit else VIT
    prefix, read_by_head = ARCHITECTURES[architecture]
    if pooling != read_by_head or model.get_config()["transform"] is not None:
        raise without_counterpart(architecture, pooling=pooling)
    for name in ("image_size", "patch_size"):
        if not is_integer(sizes[name]):
            raise without_counterpart(architecture, **{name: sizes[name]})
    read = [name for name, _ in ARGUMENTS.values()]
    read += ["activation", "distillation_token", "random_shift"]  # the last is for training
    expected = dataclasses.asdict(PatchSizes()) | {"learned_positions": True}
    expected |= {name: sizes[name] for name in read}
    require_counterparts(encoder, expected, architecture)
    config = written_arguments(encoder, ARGUMENTS) | labels_of(task.labels)
    config |= {
        "architectures": [architecture],
        "model_type": "deit" if is_deit else "vit",
        "hidden_act": written_activation(sizes["activation"]),
        "qkv_bias": True,
    }
    weights = vit_weights(model)

    def rename(name: str) -> str:
        return name if "classifier" in name else prefix + name

    files = {CONFIG: config, PREPROCESSOR: _written_preprocessor(task)}
    return Outgoing(model=model, weights=weights, rename=rename, files=files)


def _written_preprocessor(task: ImageClassificationTask) -> dict[str, Any]:
    """The settings of an image processor that gives pixels from -1 to 1."""
    size, cut = task.resize_to, dict(zip(("height", "width"), task.image_size, strict=True))
    config = {
        "image_processor_type": "ViTImageProcessor" if size is None else "DeiTImageProcessor",
        "do_resize": True,
        "size": cut,
        "resample": written_as("interpolation", task.interpolation, INTERPOLATIONS),
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * task.channels,
        "image_std": [0.5] * task.channels,
    }
    if size is None:
        return config
    before = {"shortest_edge": size} if is_integer(size) else dict(zip(cut, size, strict=True))
    return config | {"do_center_crop": True, "crop_size": cut, "size": before}

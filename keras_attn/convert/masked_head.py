"""The head by which a BERT of Hugging Face tells hidden tokens."""

from collections.abc import Callable

import numpy as np

from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.weight_map import WeightMap
from keras_attn.models import MaskedLanguageModel
from keras_attn.validation import require

_HEAD = "cls.predictions"
_BIAS = f"{_HEAD}.bias"
_EMBEDDING = "embeddings.word_embeddings.weight"

# Second names under which older checkpoints hold what they have already.
_AGAIN = {f"{_HEAD}.decoder.weight": _EMBEDDING, f"{_HEAD}.decoder.bias": _BIAS}


def map_head(weights: WeightMap, model: MaskedLanguageModel) -> None:
    """Has the head's weights copied; those of the encoder are mapped by whoever knows it."""
    weights.copy_linear(model.transform, f"{_HEAD}.transform.dense")
    weights.copy_norm(model.norm, f"{_HEAD}.transform.LayerNorm")
    weights.copy(model.bias.bias, _BIAS)
    for name in _AGAIN:
        weights.ignore(name.replace(".", r"\."))


def check_tied(tensors: SafetensorsFolder, rename: Callable[[str], str]) -> None:
    """Raises unless what a checkpoint holds twice is the same both times.

    Args:
        tensors: The checkpoint.
        rename: From a tensor's name to the one that the map knows it by.

    Raises:
        UserError: The output projection is no copy of the embedding, or its bias another.
    """
    original = {rename(name): name for name in tensors.shapes}
    for again, first in _AGAIN.items():
        if again in original and first in original:
            same = np.array_equal(tensors.read(original[again]), tensors.read(original[first]))
            require(
                same,
                f"{tensors.path}: a head whose weights are not the embedding's is not supported.",
                tensor=original[again],
                unlike=original[first],
            )

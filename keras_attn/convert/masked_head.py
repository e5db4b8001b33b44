"""Conversion of Hugging Face's masked language model head of BERT."""

from collections.abc import Callable

import numpy as np

from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.weight_map import WeightMap
from keras_attn.models import MaskedLanguageModel
from keras_attn.validation import require

_HEAD = "cls.predictions"
_BIAS = f"{_HEAD}.bias"
_EMBEDDING = "embeddings.word_embeddings.weight"

# Names of second copies in older checkpoints.
_AGAIN = {f"{_HEAD}.decoder.weight": _EMBEDDING, f"{_HEAD}.decoder.bias": _BIAS}


def map_head(weights: WeightMap, model: MaskedLanguageModel) -> None:
    """Maps the head's weights; the caller maps those of the encoder."""
    weights.copy_linear(model.transform, f"{_HEAD}.transform.dense")
    weights.copy_norm(model.norm, f"{_HEAD}.transform.LayerNorm")
    weights.copy(model.bias.bias, _BIAS)
    for name in _AGAIN:
        weights.ignore(name.replace(".", r"\."))


def check_tied(tensors: SafetensorsFolder, rename: Callable[[str], str]) -> None:
    """Raises unless both copies of a tensor in a checkpoint are equal.

    Args:
        tensors: The checkpoint.
        rename: Converts a tensor's name to its name in the map.

    Raises:
        UserError: The output projection is not a copy of the embedding, or the biases differ.
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

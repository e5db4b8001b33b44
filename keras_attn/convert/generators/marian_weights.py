"""Map of Marian's weights to the tensors of a checkpoint."""

import re
from collections.abc import Collection, Sequence

import keras
import numpy as np
from keras import ops

from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap, attention_parts
from keras_attn.models import Marian
from keras_attn.ops import sinusoidal_positions
from keras_attn.validation import require

_SHARED = "model.shared.weight"
_SOURCE = "model.encoder.embed_tokens.weight"
_TARGET = "model.decoder.embed_tokens.weight"
_OUTPUT = "lm_head.weight"
_BIAS = "final_logits_bias"
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_ATTENTIONS = ("self_attn", "encoder_attn")
_NEVER = -3e4  # a logit with probability 0 in every dtype


def fill_marian(
    model: Marian,
    tensors: SafetensorsFolder,
    source_rows: Sequence[int],
    target_rows: Sequence[int],
) -> None:
    """Copies a checkpoint's weights into a model of the same sizes and one more token per side.

    Args:
        model: The model.
        tensors: The checkpoint.
        source_rows: The checkpoint's id of each of our source tokens, -1 for padding.
        target_rows: Those of the target tokens.

    Raises:
        UserError: A tensor is missing, unused or of another shape, two copies of an
            embedding differ, or positions are not sinusoids.
    """
    found = {_full_name(name): name for name in tensors.shapes}
    weights = marian_weights(model, source_rows, target_rows, found)
    for name, first in _copies(model, found).items():
        weights.ignore(re.escape(name))
        tensors.require_same(found[name], found[first])
    for name in _POSITIONS:
        if name in found:
            _check_sinusoids(tensors, found[name], model.hidden_dim)
            weights.ignore(re.escape(name))
    weights.fill(model, tensors, _full_name)


def marian_weights(
    model: Marian,
    source_rows: Sequence[int],
    target_rows: Sequence[int],
    found: Collection[str] | None = None,
) -> WeightMap:
    """Maps the weights of a model to the tensors of a checkpoint.

    Args:
        model: The model.
        source_rows: The checkpoint's id of each of our source tokens, -1 for padding.
        target_rows: Those of the target tokens.
        found: The tensors of a checkpoint that may lack some; by default it lacks none.
    """
    weights = WeightMap()
    rows = {"source": source_rows, "target": target_rows, "output": target_rows}
    for side, names in _embeddings(model).items():
        first = next((name for name in names if found is None or name in found), names[0])
        embedding = getattr(model, f"{side}_embedding").embeddings
        weights.copy_rows(embedding, first, rows[side])
    bias = (model.output_embedding or model.target_embedding).output_bias
    if found is None or _BIAS in found:
        weights.copy_rows(bias, _BIAS, target_rows, flat=True)
    else:
        weights.keep(bias)
    for side in ("encoder", "decoder"):
        for number, block in enumerate(getattr(model, f"{side}_blocks")):
            layer = f"model.{side}.layers.{number}"
            for name, (attention, norm) in zip(_ATTENTIONS, attention_parts(block), strict=False):
                _attention(weights, attention, f"{layer}.{name}")
                weights.copy_norm(norm, f"{layer}.{name}_layer_norm")
            _feed_forward(weights, block, layer)
    return weights


def _embeddings(model: Marian) -> dict[str, tuple[str, ...]]:
    """Names of each embedding's tensors, which are equal; some of them may be missing."""
    output = () if model.output_embedding else (_OUTPUT,)
    if model.source_embedding is model.target_embedding:
        names = {"target": (_SHARED, _SOURCE, _TARGET, *output)}
    else:
        names = {"source": (_SOURCE,), "target": (_TARGET, *output)}
    return names if output else names | {"output": (_OUTPUT,)}


def _copies(model: Marian, found: Collection[str]) -> dict[str, str]:
    """The tensors that are copies, each with the first of its kind."""
    groups = [[name for name in names if name in found] for names in _embeddings(model).values()]
    return {name: group[0] for group in groups for name in group[1:]}


def never_predict(model: Marian, token_id: int) -> None:
    """Sets the probability of a token as the next token to 0."""
    bias = (model.output_embedding or model.target_embedding).output_bias
    is_it = ops.arange(bias.shape[0]) == token_id
    bias.assign(ops.where(is_it, _NEVER, bias))


def _attention(weights: WeightMap, layer: keras.layers.Layer, name: str) -> None:
    for projection in layer.projections:
        names = [f"{name}.{role[0]}_proj" for role in projection.heads]
        weights.copy_linear(projection, *names)
    weights.copy_linear(layer.output_projection, f"{name}.out_proj")


def _feed_forward(weights: WeightMap, block: keras.layers.Layer, name: str) -> None:
    weights.copy_linear(block.feed_forward.intermediate, f"{name}.fc1")
    weights.copy_linear(block.feed_forward.output_projection, f"{name}.fc2")
    weights.copy_norm(block.feed_forward_residual.norm, f"{name}.final_layer_norm")


def _check_sinusoids(tensors: SafetensorsFolder, name: str, width: int) -> None:
    """Checks the positions in older checkpoints, because they are computed here."""
    positions = tensors.shapes[name][0] if tensors.shapes[name] else 0
    require(
        tensors.shapes[name] == (positions, width) and positions > 0,
        f"{tensors.path}: {name} must have a row of {width} numbers for each position.",
        shape=tensors.shapes[name],
    )
    expected = sinusoidal_positions(positions, width, interleaved=False)
    expected = ops.convert_to_numpy(expected)
    same = np.allclose(tensors.read(name), expected, atol=1e-3)  # tolerance of half precision
    require(same, f"{tensors.path}: {name} must contain sinusoids, the sines first.")


def _full_name(name: str) -> str:
    """The name of a tensor in a model with an output layer."""
    own = name.startswith(("model.", "lm_head.")) or name == _BIAS
    return name if own else f"model.{name}"

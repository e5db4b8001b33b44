"""Map of Marian's weights to the tensors of a checkpoint."""

import re
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.weight_map import WeightMap, attention_parts
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
    weights = WeightMap()
    found = {_full_name(name): name for name in tensors.shapes}

    def embedding(weight: keras.Variable, rows: Sequence[int], *names: str) -> None:
        """One of several equal tensors; some of them may be missing."""
        first, *others = [name for name in names if name in found] or names[:1]
        weights.copy_rows(weight, first, rows)
        for name in others:
            weights.ignore(re.escape(name))
            tensors.require_same(found[name], found[first])

    is_shared = model.source_embedding is model.target_embedding
    output = () if model.output_embedding else (_OUTPUT,)
    if is_shared:
        names = (_SHARED, _SOURCE, _TARGET, *output)
        embedding(model.target_embedding.embeddings, target_rows, *names)
    else:
        embedding(model.source_embedding.embeddings, source_rows, _SOURCE)
        embedding(model.target_embedding.embeddings, target_rows, _TARGET, *output)
    if model.output_embedding:
        embedding(model.output_embedding.embeddings, target_rows, _OUTPUT)
    bias = (model.output_embedding or model.target_embedding).output_bias
    if _BIAS in found:
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
    for name in _POSITIONS:
        if name in found:
            _check_sinusoids(tensors, found[name], model.hidden_dim)
            weights.ignore(re.escape(name))
    weights.fill(model, tensors, _full_name)


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

"""What the encoder-decoders have in common: embeddings, presets, configuration."""

import types
from typing import Any, ClassVar

import keras

from keras_attn.layers.copies import deserialize_layers, serialize_layer
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.models.presets import get_preset
from keras_attn.validation import require


class Seq2SeqModel(keras.Model):
    """A functional model of source and target ids, with 0 as padding.

    A subclass calls `super().__init__(inputs, logits)` and then `_keep_arguments`, and gives
    `initial_state` and `step`, by which `keras_attn.generation` decodes.
    """

    _layer_arguments: ClassVar[tuple[str, ...]] = ()
    """The arguments of the constructor that are layers."""

    def _keep_arguments(self, dtype, **arguments: Any) -> None:
        self.dtype_policy = dtype  # by which `compile` knows whether to scale the loss
        arguments["dtype"] = keras.dtype_policies.serialize(dtype)
        # Not a dict, in which Keras would take layers for parts of the model.
        self._arguments = types.SimpleNamespace(**arguments)

    @classmethod
    def from_preset(cls, name: str, vocabulary_size: int, **overrides) -> "Seq2SeqModel":
        """Builds an untrained model of a preset's sizes.

        Args:
            name: Name of the preset (`keras-attn presets` lists them).
            vocabulary_size: Number of source tokens.
            **overrides: Arguments of the constructor that take the place of the preset's.

        Returns:
            The model.

        Raises:
            UserError: No preset of this family has that name.
        """
        preset = get_preset(name, family=cls.__name__)
        return cls(vocabulary_size, **(preset.config | overrides))

    def get_config(self):
        config = {"name": self.name, "trainable": self.trainable} | vars(self._arguments)
        layers = {part: config[part] for part in self._layer_arguments}
        return config | {
            part: serialize_layer(layer)
            for part, layer in layers.items()
            if isinstance(layer, keras.layers.Layer)
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        layers = [part for part in cls._layer_arguments if isinstance(config.get(part), dict)]
        return cls(**deserialize_layers(config, *layers, custom_objects=custom_objects))


def id_inputs() -> dict[str, keras.KerasTensor]:
    """The inputs of a model: source and target ids, int32 (batch, source) and (batch, target)."""
    return {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in ("source_ids", "target_ids")
    }


def token_embeddings(
    vocabulary_size: int, target_vocabulary_size: int | None, hidden_dim: int, **arguments: Any
) -> tuple[TokenEmbedding, TokenEmbedding]:
    """Makes the embeddings of source and target, one for both where they share a vocabulary.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        hidden_dim: Size of a token's vector.
        **arguments: Further arguments of `TokenEmbedding`.

    Returns:
        The source's embedding and the target's.
    """
    source = TokenEmbedding(vocabulary_size, hidden_dim, name="source_embedding", **arguments)
    if target_vocabulary_size is None:
        return source, source
    target = TokenEmbedding(
        target_vocabulary_size, hidden_dim, name="target_embedding", **arguments
    )
    return source, target


def require_rows(token_ids: Any, of_source: Any, beams: int) -> None:
    """Raises unless there is a token for each hypothesis, as far as the shapes are known.

    Args:
        token_ids: int32 (rows,).
        of_source: Tensors with one row for each source, if there are any.
        beams: Number of hypotheses of each source.

    Raises:
        UserError: There are more or fewer.
    """
    rows, held = token_ids.shape[0], keras.tree.flatten(of_source)
    sources = held[0].shape[0] if held else None
    require(
        rows is None or sources is None or rows == sources * beams,
        "`step` needs a token for each of the `beams` hypotheses that `initial_state` made room "
        "for.",
        tokens=rows,
        sources=sources,
        beams=beams,
    )

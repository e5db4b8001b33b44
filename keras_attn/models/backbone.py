"""What all backbones have in common: presets, and configurations with layers in them."""

import types
from collections.abc import Callable
from typing import Any, ClassVar

import keras

from keras_attn.layers.composite_layer import computing_policy, serialize_policies
from keras_attn.layers.copies import deserialize_layers, serialize_layer
from keras_attn.models.named_inputs import NamedInputs
from keras_attn.models.presets import get_preset
from keras_attn.models.size_check import check_sizes


class Backbone(NamedInputs):
    """A functional model over token ids, with 0 as padding, or over what a front end embeds.

    A subclass builds its layers, calls the constructor of `keras.Model` with inputs and outputs,
    and then `_keep_arguments`.
    """

    layer_arguments: ClassVar[tuple[str, ...]] = ()
    """Names of the arguments that are layers, or may be."""

    _embedded: Callable | None = None
    """From token ids to what the first of the `blocks` takes, where one follows the other."""

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """The layers in their order, for the quantization modes "gptq" and "awq".

        Args:
            mode: The mode.

        Returns:
            What Keras asks for, or `None` where a block takes more than the output of the one
            before, as in encoder-decoders.
        """
        if self._embedded is None:
            return None
        return {"pre_block_layers": [self._embedded], "sequential_blocks": self.blocks}

    def __call__(self, inputs, *args, **kwargs):
        """Calls the model; ragged ids of TensorFlow are padded with 0."""
        return super().__call__(keras.tree.map_structure(_padded, inputs), *args, **kwargs)

    def _keep_arguments(self, dtype: keras.DTypePolicy, **arguments: Any) -> None:
        # By which `compile` knows whether to scale the loss; Keras would quantize by it again.
        self.dtype_policy = computing_policy(dtype)
        # Not a dict, in which Keras would take layers for parts of the model.
        self._arguments = types.SimpleNamespace(**arguments)

    @classmethod
    def from_preset(cls, name: str, *arguments, **overrides) -> "Backbone":
        """Builds an untrained model of a preset's sizes.

        Args:
            name: Name of the preset (`keras-attn presets` lists them).
            *arguments: What no preset says: of models over tokens `vocabulary_size`, their
                number, of the source where there is a target too.
            **overrides: Arguments of the constructor that take the place of the preset's.

        Returns:
            The model.

        Raises:
            UserError: No preset of this family has that name, or the model would be too large.
        """
        preset = get_preset(name, family=cls.__name__)
        config = preset.config | overrides

        def make() -> "Backbone":
            return cls(*arguments, **config)

        check_sizes({"vocabulary_size": arguments} | config, make)
        return make()

    def get_config(self):
        config = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": serialize_policies(self),
        } | vars(self._arguments)
        layers = {part: config[part] for part in self.layer_arguments}
        return config | {
            part: serialize_layer(layer)
            for part, layer in layers.items()
            if isinstance(layer, keras.layers.Layer)
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        layers = [part for part in cls.layer_arguments if isinstance(config.get(part), dict)]
        return cls(**deserialize_layers(config, *layers, custom_objects=custom_objects))


def _padded(x: Any) -> Any:
    return x.to_tensor() if type(x).__name__ == "RaggedTensor" else x

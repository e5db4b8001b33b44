"""Base class of backbones: presets, and configurations with layers in them."""

from collections.abc import Callable
from typing import Any

import keras

from keras_attn.models.configured_model import ConfiguredModel
from keras_attn.models.presets import get_preset
from keras_attn.models.size_check import check_sizes
from keras_attn.tensors import Tensor
from keras_attn.validation import require


class Backbone(ConfiguredModel):
    """A functional model over token ids, with 0 as padding, or over what a front end embeds.

    Args:
        **kwargs: Arguments of `ConfiguredModel`.
    """

    _preset: str | None = None
    """Name of the preset that the model was made from, with random weights."""

    _embedded: Callable | None = None
    """From token ids to what the first of the `blocks` takes, where one follows the other."""

    def _take_parts(self, stack: Any) -> None:
        """Keeps the layers of a `TokenStack` as attributes."""
        self.positions, self.blocks, self.norm = stack.positions, stack.blocks, stack.norm

    def _take_token_parts(self, stack: Any, max_length: int | None) -> None:
        """Keeps the layers of a `TokenStack` from ids, and the greatest number of positions."""
        self.hidden_dim = stack.embedding.hidden_dim
        self.embedding = stack.embedding
        self._take_parts(stack)
        self._embedded = stack.embedded
        self.max_length = max_length

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

    @classmethod
    def from_preset(
        cls, name: str, *arguments, load_weights: bool = False, **overrides
    ) -> "Backbone":
        """Builds a randomly initialized model of a preset's sizes.

        Args:
            name: Name of the preset (`keras-attn presets` lists them).
            *arguments: Arguments that presets do not set: for models over tokens the
                `vocabulary_size`, that of the source if there is also a target.
            load_weights: Must be `False`: presets have no weights. Trained ones come from
                `keras_attn.load` and `keras_attn.convert.from_huggingface`.
            **overrides: Arguments of the constructor that take the place of the preset's.

        Returns:
            The model.

        Raises:
            UserError: No preset of this family has that name, the model would be too large, or
                weights are asked for.
        """
        require(
            not load_weights,
            "Presets have no weights: `keras_attn.load` loads a trained model, and "
            "`keras_attn.convert.from_huggingface` converts a checkpoint.",
            load_weights=load_weights,
        )
        preset = get_preset(name, family=cls.__name__)
        config = preset.config | overrides

        def make() -> "Backbone":
            return cls(*arguments, **config)

        check_sizes({"vocabulary_size": arguments} | config, make)
        model = make()
        model._preset = name
        return model

    def summary(self, *args, **kwargs):
        """Prints the summary of `keras.Model`, and that a preset's weights begin random."""
        if self._preset is not None:
            print(f"{self._preset}: randomly initialized, unless trained or loaded since")  # noqa: T201
        super().summary(*args, **kwargs)


def _padded(x: Tensor) -> Any:
    return x.to_tensor() if type(x).__name__ == "RaggedTensor" else x

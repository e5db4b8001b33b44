"""The models of a preset's family as a KerasTuner HyperModel, for those who call it themselves."""

from collections.abc import Mapping
from typing import Any

import keras
import keras_tuner

from keras_attn.models import get_preset, model_class
from keras_attn.training.losses import TokenCrossEntropy
from keras_attn.tuning.spaces import family_space


class PresetHyperModel(keras_tuner.HyperModel):
    """Compiled models around a preset, for any KerasTuner tuner.

    The model takes `{"source_ids": …, "target_ids": …}` and gives logits; the labels are the
    target ids one position on, 0 at padding.

    Args:
        preset: Name of the preset, whose sizes hold where the space does not vary them.
        vocabulary_size: Number of source tokens.
        space: What is varied, as for `SearchSpace`; laid over the family's own space. Of the
            training settings the learning rate and the label smoothing are used, the rest is
            `fit`'s.
        **arguments: Further arguments of the model, such as `target_vocabulary_size`.

    Raises:
        UserError: There is no such preset, or the space is not as it must be.
    """

    def __init__(
        self,
        preset: str,
        vocabulary_size: int,
        space: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self._preset = get_preset(preset)
        self._name = preset
        self._arguments = {"vocabulary_size": vocabulary_size} | arguments
        self.space = family_space(self._preset.family).restricted(space or {})

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """The compiled model of a trial."""
        settings = self.space.draw(hp)
        training = dict(self._preset.recipe.get("training", {})) | settings.get("training", {})
        arguments = self._arguments | settings.get("model", {})
        model = model_class(self._name).from_preset(self._name, **arguments)
        model.compile(
            optimizer=keras.optimizers.Adam(training["learning_rate"], beta_2=0.98),
            loss=TokenCrossEntropy(training.get("label_smoothing", 0.0)),
        )
        return model

"""The models of a preset's family as a KerasTuner HyperModel, for your own tuners."""

from collections.abc import Mapping
from typing import Any

import keras
import keras_tuner

from keras_attn.models import SequenceClassifier, get_preset, model_class
from keras_attn.models.attention_override import attention_override
from keras_attn.training.loop.losses import TokenAccuracy, TokenCrossEntropy
from keras_attn.training.task_runs.base import MOST_TOKENS
from keras_attn.tuning.spaces import family_space
from keras_attn.validation import require

_OF_CLASSES = ("classification", "image_classification")


class PresetHyperModel(keras_tuner.HyperModel):
    """A hypermodel of compiled variants of a preset, for any KerasTuner tuner.

    An encoder-decoder takes `{"source_ids": …, "target_ids": …}` and a language model
    `{"token_ids": …}`; their labels are the ids of the next position, 0 at padding. An encoder
    takes `{"token_ids": …}`, one of images `{"images": …}`, and its labels are classes, from 0 on.

    Args:
        preset: Name of the preset, whose sizes are used unless the space varies them.
        vocabulary_size: Number of tokens, for encoder-decoders those of the source; `None` for
            images.
        space: What to vary, by the name of a setting such as `"model.hidden_dim"`: a list of
            values, `{"min": …, "max": …, "step": …, "log": …}`, or one value for all trials. These
            replace entries of the default space of the preset's family. The only training settings
            used are the learning rate and, for tokens, the label smoothing.
        num_classes: Number of classes, for presets of encoders only.
        max_length: Longest sequence, for the mechanisms that need it.
        **arguments: Further arguments of the model, such as `target_vocabulary_size`.

    Raises:
        UserError: The preset is unknown, the space is invalid, or `num_classes` is missing for a
            preset of encoders or given for another preset, or it is one of forecasters.

    Examples:
        >>> import keras_tuner
        >>> space = {"model.hidden_dim": [8, 16], "model.num_layers": 1, "model.num_heads": 2}
        >>> hypermodel = PresetHyperModel("lm_tiny", vocabulary_size=13, space=space)
        >>> tuner = keras_tuner.RandomSearch(hypermodel, "val_loss", max_trials=1, seed=1)
        >>> ids = np.array([[1, 5, 9, 4], [1, 7, 3, 6], [1, 5, 3, 4], [1, 7, 9, 6]])
        >>> tuner.search({"token_ids": ids[:, :-1]}, ids[:, 1:], validation_split=0.5, verbose=0)
        >>> tuner.get_best_hyperparameters()[0]["model.hidden_dim"]
        8
    """

    def __init__(
        self,
        preset: str,
        vocabulary_size: int | None = None,
        space: Mapping[str, Any] | None = None,
        *,
        num_classes: int | None = None,
        max_length: int = MOST_TOKENS,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self._preset = get_preset(preset)
        self._recipe = self._preset.recipe()
        require(
            "forecast" not in self._preset.tasks,
            "A forecaster is tuned by `keras_attn.tuning.tune`, whose trials read the series.",
            preset=preset,
        )
        require(
            (num_classes is not None) == (self._preset.tasks[0] in _OF_CLASSES),
            "`num_classes` is required for presets of encoders, and only for them.",
            preset=preset,
            num_classes=num_classes,
        )
        self._num_classes = num_classes
        self._max_length = max_length
        self._name = preset
        tokens = {} if vocabulary_size is None else {"vocabulary_size": vocabulary_size}
        self._arguments = tokens | arguments
        self.space = family_space(self._preset.family).restricted(space or {})

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """Makes the compiled model of a trial."""
        settings = self.space.draw(hp)
        training = self._recipe.get("training", {}) | settings.get("training", {})
        sizes = self._recipe.get("model", {}) | settings.get("model", {})
        arguments = self._arguments | sizes
        head = {name: arguments.pop(name) for name in ("pooling",) if name in arguments}
        if "attention" in settings:
            arguments |= attention_override(
                self._name, sizes, settings["attention"], self._max_length
            )
        model = model_class(self._name).from_preset(self._name, **arguments)
        if self._num_classes is None:
            loss = TokenCrossEntropy(training.get("label_smoothing", 0.0))
            metrics = [TokenAccuracy()]
        else:
            model = SequenceClassifier(model, self._num_classes, **head)
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            metrics = ["accuracy"]
        optimizer = keras.optimizers.Adam(training["learning_rate"], beta_2=0.98)
        model.compile(optimizer=optimizer, loss=loss, metrics=metrics)
        return model

"""Named sizes of models, with the paper that they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from keras_attn.models.bert_presets import BERT_PRESETS
from keras_attn.models.causal_transformer_presets import CAUSAL_TRANSFORMER_PRESETS
from keras_attn.models.compressive_transformer_presets import COMPRESSIVE_TRANSFORMER_PRESETS
from keras_attn.models.conv_presets import CONV_PRESETS
from keras_attn.models.etc_presets import ETC_PRESETS
from keras_attn.models.gpt2_presets import GPT2_PRESETS
from keras_attn.models.patch_encoder_presets import PATCH_ENCODER_PRESETS
from keras_attn.models.recurrent_presets import GNMT_PRESETS, RECURRENT_PRESETS
from keras_attn.models.reformer_presets import REFORMER_PRESETS
from keras_attn.models.synthesizer_presets import SYNTHESIZER_PRESETS
from keras_attn.models.t5_presets import T5_PRESETS
from keras_attn.models.transformer_encoder_presets import TRANSFORMER_ENCODER_PRESETS
from keras_attn.models.transformer_presets import TRANSFORMER_PRESETS
from keras_attn.validation import require_one_of


@dataclass(frozen=True)
class Preset:
    """A model's sizes, and the recipe by which it is trained.

    Attributes:
        family: Name of the model class.
        description: What it is, in one line.
        paper: Where the sizes come from.
        config: Arguments of the model class, without the vocabulary.
        recipe: Sections of a run's settings ("task", "training", "model", "tokenizers",
            "decoding", "metrics") in which it differs from the defaults.
        other_recipes: Recipes for other tasks that it can be trained for, by the task.
    """

    family: str
    description: str
    paper: str
    config: Mapping[str, Any]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    other_recipes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """The kind of task that it is trained for where nothing else is said."""
        return self.recipe.get("task", "seq2seq")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The kinds of tasks that it can be trained for."""
        return (self.task, *self.other_recipes)

    def recipe_for(self, task: str | None) -> Mapping[str, Any]:
        """The recipe for a kind of task; its own one for `None`, and where there is no other."""
        return self.other_recipes.get(task, self.recipe)


_FAMILIES = {
    "Transformer": TRANSFORMER_PRESETS,
    "SynthesizerTransformer": SYNTHESIZER_PRESETS,
    "T5": T5_PRESETS,
    "TransformerEncoder": TRANSFORMER_ENCODER_PRESETS,
    "Etc": ETC_PRESETS,
    "Bert": BERT_PRESETS,
    "PatchEncoder": PATCH_ENCODER_PRESETS,
    "CausalTransformer": CAUSAL_TRANSFORMER_PRESETS,
    "Gpt2": GPT2_PRESETS,
    "CompressiveTransformer": COMPRESSIVE_TRANSFORMER_PRESETS,
    "Reformer": REFORMER_PRESETS,
    "RecurrentSeq2Seq": RECURRENT_PRESETS,
    "Gnmt": GNMT_PRESETS,
    "ConvSeq2Seq": CONV_PRESETS,
}

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        name: Preset(family, **numbers)
        for family, presets in _FAMILIES.items()
        for name, numbers in presets.items()
    }
)


def get_preset(name: str, family: str | None = None) -> Preset:
    """Looks a preset up by its name.

    Args:
        name: The name.
        family: Only presets of this model class count, where given.

    Returns:
        The preset.

    Raises:
        UserError: There is none of that name; the message lists those there are.
    """
    names = [key for key, preset in PRESETS.items() if family in (None, preset.family)]
    require_one_of("preset", name, names)
    return PRESETS[name]

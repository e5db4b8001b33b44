"""Model families, built from the layers of this package."""

import keras

from keras_attn.models.bert import Bert
from keras_attn.models.compressive import CompressiveTransformer
from keras_attn.models.convolutional import ConvSeq2Seq
from keras_attn.models.ensemble import Ensemble
from keras_attn.models.etc import ETC
from keras_attn.models.forecast import Forecaster
from keras_attn.models.gpt2 import GPT2
from keras_attn.models.heads import (
    MaskedLanguageModel,
    PooledEncoder,
    SequenceClassifier,
    TokenClassifier,
)
from keras_attn.models.marian import Marian
from keras_attn.models.presets import PRESETS, Preset, get_preset
from keras_attn.models.recurrent import GNMT, RecurrentSeq2Seq
from keras_attn.models.reformer import Reformer
from keras_attn.models.speech import FeatureEncoder
from keras_attn.models.synthesizer import SynthesizerTransformer
from keras_attn.models.t5 import T5
from keras_attn.models.transformer import CausalTransformer, Transformer, TransformerEncoder
from keras_attn.models.vit import PatchEncoder
from keras_attn.renamed import load_old_names, old_names

__all__ = [
    "ETC",
    "GNMT",
    "GPT2",
    "PRESETS",
    "T5",
    "Bert",
    "CausalTransformer",
    "CompressiveTransformer",
    "ConvSeq2Seq",
    "Ensemble",
    "FeatureEncoder",
    "Forecaster",
    "Marian",
    "MaskedLanguageModel",
    "PatchEncoder",
    "PooledEncoder",
    "Preset",
    "RecurrentSeq2Seq",
    "Reformer",
    "SequenceClassifier",
    "SynthesizerTransformer",
    "TokenClassifier",
    "Transformer",
    "TransformerEncoder",
    "get_preset",
    "model_class",
]


def model_class(preset: str) -> type[keras.Model]:
    """Looks up the class that a preset is a size of.

    Args:
        preset: Name of the preset.

    Returns:
        The class, with `from_preset`.

    Raises:
        UserError: There is no preset of that name.

    Examples:
        >>> model_class("bert_base").__name__
        'Bert'
    """
    return globals()[get_preset(preset).family]


__getattr__ = old_names(__name__, {"Etc": "ETC", "Gnmt": "GNMT", "Gpt2": "GPT2"}, globals())
load_old_names({"Etc": ETC, "Gnmt": GNMT, "Gpt2": GPT2})

"""Heads on encoders: classifiers, taggers and masked language models."""

from keras_attn.models.heads.masked_language_model import MaskedLanguageModel
from keras_attn.models.heads.pooled_encoder import PooledEncoder
from keras_attn.models.heads.sequence_classifier import SequenceClassifier
from keras_attn.models.heads.token_classifier import TokenClassifier

__all__ = ["MaskedLanguageModel", "PooledEncoder", "SequenceClassifier", "TokenClassifier"]

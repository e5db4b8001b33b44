"""Encoder of feature sequences, such as speech."""

from keras_attn.models.speech.feature_encoder import FeatureEncoder

__all__ = ["FeatureEncoder"]

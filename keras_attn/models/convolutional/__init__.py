"""Convolutional encoder-decoder with attention."""

from keras_attn.models.convolutional.conv_seq2seq import ConvSeq2Seq
from keras_attn.models.convolutional.presets import CONV_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["ConvSeq2Seq"]

register_presets("ConvSeq2Seq", CONV_PRESETS, "conv_seq2seq")

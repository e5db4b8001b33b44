"""Recurrent encoder-decoders with attention."""

from keras_attn.models.presets import register_presets
from keras_attn.models.recurrent.gnmt import GNMT
from keras_attn.models.recurrent.presets import GNMT_PRESETS, RECURRENT_PRESETS
from keras_attn.models.recurrent.recurrent_seq2seq import RecurrentSeq2Seq

__all__ = ["GNMT", "RecurrentSeq2Seq"]

register_presets("RecurrentSeq2Seq", RECURRENT_PRESETS, "recurrent")
register_presets("GNMT", GNMT_PRESETS, "gnmt")

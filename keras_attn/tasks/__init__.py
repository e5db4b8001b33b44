"""Tokenizers, a model and decoding in one: what a user trains, saves, runs and exports."""

from keras_attn.tasks.base import Task
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.hypothesis import Hypothesis
from keras_attn.tasks.seq2seq import Seq2SeqTask
from keras_attn.tasks.serving import Servable, ServingFunction

__all__ = [
    "DecodingSettings",
    "Hypothesis",
    "Seq2SeqTask",
    "Servable",
    "ServingFunction",
    "Task",
]

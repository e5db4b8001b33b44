"""Every family that generates: its search is held against the scores of all texts there are."""

import itertools

import numpy as np
import pytest

from keras_attn.models import Transformer
from keras_attn.tasks import CausalLMTask, DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import train_tokenizer
from tests.layers.judges import spread_weights
from tests.models import families, test_language_models

pytestmark = pytest.mark.tensorflow

LETTERS = "abcdefg"  # with the special tokens the eleven of the models
KEPT, LONGEST, BEAMS = "abc", 4, 28  # every text of three letters, and one beam to spare
SOURCES = ["face", "g", ""]
DECODING = DecodingSettings(
    max_source_length=7, max_length=LONGEST, banned_words=tuple(LETTERS.strip(KEPT))
)
SLOW = pytest.mark.slow


def seq2seq(model):
    tokenizer = train_tokenizer("characters", [LETTERS])
    return Seq2SeqTask(model, tokenizer, tokenizer, DECODING)


def language_model(name):
    tokenizer = train_tokenizer("characters", [LETTERS])
    model = test_language_models.built(**test_language_models.VARIANTS[name])
    return CausalLMTask(model, tokenizer, DECODING)


CASES = {
    "Transformer": lambda: seq2seq(
        spread_weights(
            Transformer(11, num_layers=2, hidden_dim=6, num_heads=2, intermediate_dim=7)
        )
    ),
    **{
        name: lambda name=name: seq2seq(families.made(name))
        for name in families.CASES
        if families.made(name).output_shape[-1] == 11
    },
    **{
        f"language model, {name}": lambda name=name: language_model(name)
        for name in test_language_models.VARIANTS
    },
}

"""A tiny task of each kind, with random weights."""

import numpy as np
import tensorflow as tf

from keras_attn.models import (
    Bert,
    CausalTransformer,
    MaskedLanguageModel,
    PatchEncoder,
    SequenceClassifier,
    TransformerEncoder,
)
from keras_attn.tasks import (
    CausalLMTask,
    ClassificationTask,
    DecodingSettings,
    EmbeddingTask,
    ImageClassificationTask,
    MaskedLMTask,
)
from keras_attn.tokenizers import CharacterTokenizer, WordPieceTokenizer
from tests.layers.judges import spread_weights
from tests.tasks.made import SIZES

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "##gy", "runs"]


def language_model():
    tokenizer = CharacterTokenizer.train(["abc "])
    model = spread_weights(CausalTransformer(tokenizer.vocabulary_size, **SIZES))
    return CausalLMTask(model, tokenizer, DecodingSettings(max_length=5, max_source_length=9))


def classifier():
    tokenizer = CharacterTokenizer.train(["abc "])
    encoder = TransformerEncoder(tokenizer.vocabulary_size, **SIZES)
    model = spread_weights(SequenceClassifier(encoder, 2))
    return ClassificationTask(model, tokenizer, ["no", "yes"], max_length=9)


def bert():
    return spread_weights(Bert(len(PIECES), **SIZES))


def embedder():
    return EmbeddingTask(bert(), WordPieceTokenizer(PIECES), max_length=9)


def masked():
    model = spread_weights(MaskedLanguageModel(bert()))
    return MaskedLMTask(model, WordPieceTokenizer(PIECES), max_length=9)


def image_classifier():
    encoder = PatchEncoder((4, 6), 2, channels=1, **SIZES)
    return ImageClassificationTask(spread_weights(SequenceClassifier(encoder, 2)), ["no", "yes"])


def write_image(path):
    pixels = np.arange(24, dtype="uint8").reshape(4, 6, 1) * 9
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return str(path)

"""A tiny task of each kind, with random weights."""

import numpy as np
import tensorflow as tf

from keras_attn import models, tasks
from keras_attn.tokenizers import CharacterTokenizer, WordPieceTokenizer
from tests.layers.judges import spread_weights
from tests.tasks.made import SIZES

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "##gy", "runs"]


def language_model():
    tokenizer = CharacterTokenizer.train(["abc "])
    model = spread_weights(models.CausalTransformer(tokenizer.vocabulary_size, **SIZES))
    return tasks.CausalLMTask(
        model, tokenizer, tasks.DecodingSettings(max_length=5, max_source_length=9)
    )


def classifier():
    tokenizer = CharacterTokenizer.train(["abc "])
    encoder = models.TransformerEncoder(tokenizer.vocabulary_size, **SIZES)
    model = spread_weights(models.SequenceClassifier(encoder, 2))
    return tasks.ClassificationTask(model, tokenizer, ["no", "yes"], max_length=9)


def bert():
    return spread_weights(models.Bert(len(PIECES), **SIZES))


def embedder():
    return tasks.EmbeddingTask(bert(), WordPieceTokenizer(PIECES), max_length=9)


def masked():
    model = spread_weights(models.MaskedLanguageModel(bert()))
    return tasks.MaskedLMTask(model, WordPieceTokenizer(PIECES), max_length=9)


def tagger():
    model = spread_weights(models.TokenClassifier(bert(), 2))
    return tasks.TokenClassificationTask(
        model, WordPieceTokenizer(PIECES), ["O", "B-DOG"], max_length=9
    )


def translator():
    """Writes pieces as they come, for it has not learned what a word is."""
    source, target = CharacterTokenizer.train(["abc "]), WordPieceTokenizer(PIECES)
    model = models.Transformer(source.vocabulary_size, target_vocabulary_size=len(PIECES), **SIZES)
    decoding = tasks.DecodingSettings(min_length=4, max_length=7, max_source_length=9)
    return tasks.Seq2SeqTask(spread_weights(model, 5), source, target, decoding)


def image_classifier():
    encoder = models.PatchEncoder((4, 6), 2, channels=1, **SIZES)
    return tasks.ImageClassificationTask(
        spread_weights(models.SequenceClassifier(encoder, 2)), ["no", "yes"]
    )


def write_image(path):
    pixels = np.arange(24, dtype="uint8").reshape(4, 6, 1) * 9
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return str(path)

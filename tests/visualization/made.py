"""A tiny task of each kind, with random weights."""

import numpy as np
import tensorflow as tf

from keras_attn.models import (
    Bert,
    CausalTransformer,
    MaskedLanguageModel,
    PatchEncoder,
    SequenceClassifier,
    TokenClassifier,
    Transformer,
    TransformerEncoder,
)
from keras_attn.tasks import (
    CausalLMTask,
    ClassificationTask,
    DecodingSettings,
    EmbeddingTask,
    ImageClassificationTask,
    MaskedLMTask,
    Seq2SeqTask,
    TokenClassificationTask,
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


def tagger():
    model = spread_weights(TokenClassifier(bert(), 2))
    return TokenClassificationTask(model, WordPieceTokenizer(PIECES), ["O", "B-DOG"], max_length=9)


def translator():
    """Writes pieces as they come, for it has not learned what a word is."""
    source, target = CharacterTokenizer.train(["abc "]), WordPieceTokenizer(PIECES)
    model = Transformer(source.vocabulary_size, target_vocabulary_size=len(PIECES), **SIZES)
    decoding = DecodingSettings(min_length=4, max_length=7, max_source_length=9)
    return Seq2SeqTask(spread_weights(model, 5), source, target, decoding)


def image_classifier():
    encoder = PatchEncoder((4, 6), 2, channels=1, **SIZES)
    return ImageClassificationTask(spread_weights(SequenceClassifier(encoder, 2)), ["no", "yes"])


def write_image(path):
    pixels = np.arange(24, dtype="uint8").reshape(4, 6, 1) * 9
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return str(path)

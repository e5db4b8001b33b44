"""Tokenizers that run inside a TensorFlow graph: text to ids and back."""

from keras_attn.tokenizers.base import Tokenizer
from keras_attn.tokenizers.byte_level_bpe import ByteLevelBpeTokenizer
from keras_attn.tokenizers.characters import CharacterTokenizer
from keras_attn.tokenizers.loading import load_tokenizer, train_tokenizer
from keras_attn.tokenizers.marian import MarianTokenizer
from keras_attn.tokenizers.pipeline import PipelineTokenizer
from keras_attn.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_attn.tokenizers.sentinels import sentinel_ids, sentinel_tokens
from keras_attn.tokenizers.symbols import SymbolTokenizer
from keras_attn.tokenizers.text_pairs import pair_ids, shared_lengths
from keras_attn.tokenizers.word_piece import WordPieceTokenizer
from keras_attn.tokenizers.words import split_words, word_pieces

__all__ = [
    "ByteLevelBpeTokenizer",
    "CharacterTokenizer",
    "MarianTokenizer",
    "PipelineTokenizer",
    "SentencePieceTokenizer",
    "SymbolTokenizer",
    "Tokenizer",
    "WordPieceTokenizer",
    "load_tokenizer",
    "pair_ids",
    "sentinel_ids",
    "sentinel_tokens",
    "shared_lengths",
    "split_words",
    "train_tokenizer",
    "word_pieces",
]

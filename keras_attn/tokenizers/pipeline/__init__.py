"""Tokenizers that the files of the `tokenizers` library describe."""

from keras_attn.tokenizers.pipeline.tokenizer import PipelineTokenizer

__all__ = ["PipelineTokenizer"]

"""Checkpoint folders of Hugging Face, made into tasks."""

from keras_attn.convert.huggingface import Conversion, convert_huggingface, from_huggingface

__all__ = ["Conversion", "convert_huggingface", "from_huggingface"]

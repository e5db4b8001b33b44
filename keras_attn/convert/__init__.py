"""Conversion of Hugging Face and other checkpoints to tasks, and back."""

from keras_attn.convert.checkpoint import convert_checkpoint
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.g2p_en import from_g2p_en
from keras_attn.convert.huggingface import (
    convert_huggingface,
    from_huggingface,
    model_from_huggingface,
)
from keras_attn.convert.saved_huggingface import (
    model_to_huggingface,
    save_huggingface,
    write_huggingface,
)

__all__ = [
    "Conversion",
    "convert_checkpoint",
    "convert_huggingface",
    "from_g2p_en",
    "from_huggingface",
    "model_from_huggingface",
    "model_to_huggingface",
    "save_huggingface",
    "write_huggingface",
]

"""Exported tasks, used like the tasks themselves."""

from keras_attn.tasks.exported.base import Exported
from keras_attn.tasks.exported.embedding import ExportedEmbedding
from keras_attn.tasks.exported.generating import ExportedCausalLM, ExportedSeq2Seq
from keras_attn.tasks.exported.labelling import (
    ExportedClassification,
    ExportedImageClassification,
    ExportedMaskedLM,
    ExportedTokenClassification,
)
from keras_attn.tasks.exported.loading import open_exported

__all__ = [
    "Exported",
    "ExportedCausalLM",
    "ExportedClassification",
    "ExportedEmbedding",
    "ExportedImageClassification",
    "ExportedMaskedLM",
    "ExportedSeq2Seq",
    "ExportedTokenClassification",
    "open_exported",
]

"""What a run does in a way of its own for each kind of task."""

from keras_attn.training.kinds.base import RunKind
from keras_attn.training.kinds.classification import ClassificationRun
from keras_attn.training.kinds.embedding import EmbeddingRun
from keras_attn.training.kinds.image_classification import ImageClassificationRun
from keras_attn.training.kinds.language_model import LanguageModelRun
from keras_attn.training.kinds.masked_lm import MaskedLMRun
from keras_attn.training.kinds.seq2seq import Seq2SeqRun
from keras_attn.training.kinds.span_corruption import SpanCorruptionRun
from keras_attn.training.kinds.token_classification import TokenClassificationRun

RUN_KINDS = {
    kind.name: kind
    for kind in (
        Seq2SeqRun(),
        ClassificationRun(),
        EmbeddingRun(),
        ImageClassificationRun(),
        LanguageModelRun(),
        MaskedLMRun(),
        SpanCorruptionRun(),
        TokenClassificationRun(),
    )
}
"""The kinds by the name that settings have for the task."""

__all__ = ["RUN_KINDS", "RunKind"]

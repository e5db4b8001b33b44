"""BERT."""

from keras_attn.models.bert.bert import Bert
from keras_attn.models.bert.presets import BERT_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["Bert"]

register_presets(
    "Bert",
    BERT_PRESETS,
    "bert",
    (
        *("classification", "multi_label_classification", "regression", "embedding"),
        *("masked_lm", "token_classification", "rank", "question_answering"),
    ),
)

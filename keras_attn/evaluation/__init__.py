"""How good texts are against references: error rates, BLEU, chrF, ROUGE, perplexity."""

from keras_attn.evaluation.error_rates import (
    edit_distance,
    phoneme_error_rate,
    word_error_rate,
)
from keras_attn.evaluation.metrics import (
    Metric,
    evaluate_texts,
    get_metric,
    metric_names,
    metric_signatures,
)
from keras_attn.evaluation.perplexity import perplexity
from keras_attn.evaluation.summarization import rouge
from keras_attn.evaluation.translation import TranslationScore, bleu, chrf

__all__ = [
    "Metric",
    "TranslationScore",
    "bleu",
    "chrf",
    "edit_distance",
    "evaluate_texts",
    "get_metric",
    "metric_names",
    "metric_signatures",
    "perplexity",
    "phoneme_error_rate",
    "rouge",
    "word_error_rate",
]

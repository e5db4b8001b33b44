"""Metrics of texts, labels, tags, numbers and vectors: error rates, BLEU, ROUGE, F1, retrieval."""

from keras_attn.evaluation.answers import (
    ANSWERS,
    answer_exact_match,
    answer_f1,
    normalized_answer,
)
from keras_attn.evaluation.correlation import CORRELATIONS, pearson, spearman
from keras_attn.evaluation.error_rates import edit_distance, phoneme_error_rate, word_error_rate
from keras_attn.evaluation.forecasts import (
    FORECAST_METRICS,
    measure_forecasts,
    seasonal_naive,
)
from keras_attn.evaluation.label_sets import LABEL_SETS, LabelSetCounts, best_thresholds
from keras_attn.evaluation.labels import LABELS, LabelCounts, calibration_error
from keras_attn.evaluation.metrics import (
    Metric,
    evaluate_texts,
    get_metric,
    metric_names,
    metric_signatures,
)
from keras_attn.evaluation.numbers import (
    NUMBERS,
    explained_variance,
    mean_absolute_error,
    root_mean_squared_error,
)
from keras_attn.evaluation.perplexity import perplexity
from keras_attn.evaluation.ranking import (
    RANKING,
    normalized_gain,
    ranked_relevances,
    ranking_metric,
    reciprocal_rank,
)
from keras_attn.evaluation.retrieval import RETRIEVAL, partner_ranks
from keras_attn.evaluation.summarization import rouge
from keras_attn.evaluation.tagging import (
    TAGGING,
    span_f1,
    span_precision,
    span_recall,
    tag_accuracy,
    tagged_spans,
)
from keras_attn.evaluation.translation import TranslationScore, bleu, chrf

__all__ = [
    "ANSWERS",
    "CORRELATIONS",
    "FORECAST_METRICS",
    "LABELS",
    "LABEL_SETS",
    "NUMBERS",
    "RANKING",
    "RETRIEVAL",
    "TAGGING",
    "LabelCounts",
    "LabelSetCounts",
    "Metric",
    "TranslationScore",
    "answer_exact_match",
    "answer_f1",
    "best_thresholds",
    "bleu",
    "calibration_error",
    "chrf",
    "edit_distance",
    "evaluate_texts",
    "explained_variance",
    "get_metric",
    "mean_absolute_error",
    "measure_forecasts",
    "metric_names",
    "metric_signatures",
    "normalized_answer",
    "normalized_gain",
    "partner_ranks",
    "pearson",
    "perplexity",
    "phoneme_error_rate",
    "ranked_relevances",
    "ranking_metric",
    "reciprocal_rank",
    "root_mean_squared_error",
    "rouge",
    "seasonal_naive",
    "span_f1",
    "span_precision",
    "span_recall",
    "spearman",
    "tag_accuracy",
    "tagged_spans",
    "word_error_rate",
]

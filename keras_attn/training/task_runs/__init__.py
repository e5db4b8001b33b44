"""Parts of a run that depend on its task."""

from keras_attn.training.task_runs.base import TaskRun
from keras_attn.training.task_runs.causal_lm import CausalLMRun
from keras_attn.training.task_runs.classification import ClassificationRun
from keras_attn.training.task_runs.embedding import EmbeddingRun
from keras_attn.training.task_runs.forecast import ForecastRun
from keras_attn.training.task_runs.image_classification import ImageClassificationRun
from keras_attn.training.task_runs.masked_lm import MaskedLMRun
from keras_attn.training.task_runs.multi_label_classification import MultiLabelClassificationRun
from keras_attn.training.task_runs.question_answering import QuestionAnsweringRun
from keras_attn.training.task_runs.rank import RankRun
from keras_attn.training.task_runs.regression import RegressionRun
from keras_attn.training.task_runs.seq2seq import Seq2SeqRun
from keras_attn.training.task_runs.span_corruption import SpanCorruptionRun
from keras_attn.training.task_runs.token_classification import TokenClassificationRun

TASK_RUNS = {
    run.name: run
    for run in (
        Seq2SeqRun(),
        ClassificationRun(),
        MultiLabelClassificationRun(),
        RegressionRun(),
        RankRun(),
        QuestionAnsweringRun(),
        EmbeddingRun(),
        ImageClassificationRun(),
        CausalLMRun(),
        MaskedLMRun(),
        SpanCorruptionRun(),
        TokenClassificationRun(),
        ForecastRun(),
    )
}
"""Runs by the name of their task in settings."""

__all__ = ["TASK_RUNS", "TaskRun"]

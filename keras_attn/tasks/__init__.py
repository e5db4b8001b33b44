"""Tasks: a model with its tokenizers and settings, to train, save, run and export."""

from keras_attn.renamed import old_names
from keras_attn.task_folders import task_folder
from keras_attn.tasks.base import Task
from keras_attn.tasks.causal_lm import CausalLMTask
from keras_attn.tasks.classification import ClassificationTask
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.embedding import EmbeddingTask
from keras_attn.tasks.ensemble import ensemble
from keras_attn.tasks.exported.forecast import ExportedForecast
from keras_attn.tasks.exported.generating import ExportedCausalLM, ExportedSeq2Seq
from keras_attn.tasks.exported.labelling import (
    ExportedClassification,
    ExportedEmbedding,
    ExportedImageClassification,
    ExportedMaskedLM,
    ExportedMultiLabelClassification,
    ExportedRegression,
    ExportedTokenClassification,
)
from keras_attn.tasks.exported.question_answering import ExportedQuestionAnswering
from keras_attn.tasks.exported.rank import ExportedRank
from keras_attn.tasks.forecast import ForecastTask
from keras_attn.tasks.forecasts import Forecasts
from keras_attn.tasks.generating import GeneratingTask
from keras_attn.tasks.hypothesis import Hypothesis, LabelSet
from keras_attn.tasks.image_classification import ImageClassificationTask, read_inputs
from keras_attn.tasks.labels import BaseClassificationTask, LabelTask
from keras_attn.tasks.masked_lm import MaskedLMTask
from keras_attn.tasks.measuring.answered import measure_answers
from keras_attn.tasks.measuring.generated import measure
from keras_attn.tasks.measuring.labels import measure_label_sets, measure_labels, measure_tags
from keras_attn.tasks.measuring.numbers import measure_numbers
from keras_attn.tasks.measuring.rankings import measure_rankings
from keras_attn.tasks.measuring.token_losses import token_scores
from keras_attn.tasks.measuring.vectors import measure_vectors
from keras_attn.tasks.multi_label_classification import MultiLabelClassificationTask
from keras_attn.tasks.opening import open_exported, open_task
from keras_attn.tasks.question_answering import Answer, QuestionAnsweringTask
from keras_attn.tasks.rank import RankedPassage, RankTask
from keras_attn.tasks.regression import RegressionTask
from keras_attn.tasks.seq2seq import Seq2SeqTask
from keras_attn.tasks.serving import Servable, ServingFunction
from keras_attn.tasks.token_classification import TokenClassificationTask

__all__ = [
    "Answer",
    "BaseClassificationTask",
    "CausalLMTask",
    "ClassificationTask",
    "DecodingSettings",
    "EmbeddingTask",
    "ExportedCausalLM",
    "ExportedClassification",
    "ExportedEmbedding",
    "ExportedForecast",
    "ExportedImageClassification",
    "ExportedMaskedLM",
    "ExportedMultiLabelClassification",
    "ExportedQuestionAnswering",
    "ExportedRank",
    "ExportedRegression",
    "ExportedSeq2Seq",
    "ExportedTokenClassification",
    "ForecastTask",
    "Forecasts",
    "GeneratingTask",
    "Hypothesis",
    "ImageClassificationTask",
    "LabelSet",
    "LabelTask",
    "MaskedLMTask",
    "MultiLabelClassificationTask",
    "QuestionAnsweringTask",
    "RankTask",
    "RankedPassage",
    "RegressionTask",
    "Seq2SeqTask",
    "Servable",
    "ServingFunction",
    "Task",
    "TokenClassificationTask",
    "ensemble",
    "measure",
    "measure_answers",
    "measure_label_sets",
    "measure_labels",
    "measure_numbers",
    "measure_rankings",
    "measure_tags",
    "measure_vectors",
    "open_exported",
    "open_task",
    "read_inputs",
    "task_folder",
    "token_scores",
]

__getattr__ = old_names(__name__, {"LabellingTask": "BaseClassificationTask"}, globals())

"""Conversion of Hugging Face's heads of BERT: labels, numbers and masked language modeling."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_attn.convert.json_files import named_in_errors
from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.weight_map import WeightMap
from keras_attn.models import Bert, MaskedLanguageModel, SequenceClassifier, TokenClassifier
from keras_attn.tasks import (
    ClassificationTask,
    MultiLabelClassificationTask,
    RegressionTask,
    Task,
    TokenClassificationTask,
)
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_one_of

CLASSIFIER_HEAD = "classifier."
MASKED_HEAD = "cls.predictions."
_BIAS = f"{MASKED_HEAD}bias"
_EMBEDDING = "embeddings.word_embeddings.weight"
# Names of second copies in older checkpoints.
_AGAIN = {f"{MASKED_HEAD}decoder.weight": _EMBEDDING, f"{MASKED_HEAD}decoder.bias": _BIAS}
# What heads of texts compute, by `problem_type`.
_TASKS = {
    "single_label_classification": ClassificationTask,
    "multi_label_classification": MultiLabelClassificationTask,
    "regression": RegressionTask,
}


def head_task(
    path: Path,
    config: dict[str, Any],
    encoder: Bert,
    tokenizer: Tokenizer,
    max_length: int,
    weights: WeightMap,
    of_tokens: bool,
) -> Task:
    """Makes the task of a head for texts or tokens, and maps the head's weights.

    Args:
        path: File of the configuration, for error messages.
        config: The configuration.
        encoder: The model below the head, for texts with a pooler.
        tokenizer: Tokenizer of the texts.
        max_length: Most tokens of a text, start and end included.
        weights: The weight map, to which the head's weights are added.
        of_tokens: Whether tokens are classified.

    Raises:
        UserError: The head does something unknown, or there are fewer labels than it needs.
    """
    dropout = config.get("classifier_dropout")
    dropout = encoder.get_config()["dropout"] if dropout is None else dropout
    with named_in_errors(path):
        labels = _label_names(config)
        if of_tokens:
            model = TokenClassifier(encoder, len(labels), dropout)
            task = TokenClassificationTask(model, tokenizer, labels, max_length)
        else:
            # As transformers, for which a single label is a number.
            default = "single_label_classification" if len(labels) > 1 else "regression"
            problem = config.get("problem_type") or default
            require_one_of("problem_type", problem, _TASKS)
            model = SequenceClassifier(encoder, len(labels), "pooler", dropout)
            options = {"max_length": max_length, "with_start": True}
            task = _TASKS[problem](model, tokenizer, labels, **options)
    weights.copy_linear(model.get_layer("output"), CLASSIFIER_HEAD.removesuffix("."))
    return task


def map_masked_head(
    weights: WeightMap,
    model: MaskedLanguageModel,
    tensors: SafetensorsFolder,
    rename: Callable[[str], str],
) -> None:
    """Maps the weights of a head of masked language modeling.

    Args:
        weights: The weight map; the caller maps the weights of the encoder.
        model: The model.
        tensors: The checkpoint.
        rename: Converts a tensor's name to its name in the map.

    Raises:
        UserError: The output projection is not a copy of the embedding, or the biases differ.
    """
    weights.copy_linear(model.transform, f"{MASKED_HEAD}transform.dense")
    weights.copy_norm(model.norm, f"{MASKED_HEAD}transform.LayerNorm")
    weights.copy(model.bias.bias, _BIAS)
    original = {rename(name): name for name in tensors.shapes}
    for again, first in _AGAIN.items():
        weights.ignore(re.escape(again))
        if again in original and first in original:
            tensors.require_same(original[again], original[first])


def _label_names(config: dict[str, Any]) -> list[str]:
    """Reads the labels in the order of their numbers; by default those of transformers.

    Args:
        config: The configuration.

    Raises:
        UserError: `id2label` does not have the numbers 0, 1, 2 and so on.
    """
    names = config.get("id2label")
    if names is None:
        count = config.get("num_labels") or 2
        return [f"LABEL_{number}" for number in range(count)]
    numbers = sorted(map(str, range(len(names))))
    require(sorted(names) == numbers, "`id2label` must have the numbers 0, 1, 2 …", id2label=names)
    return [names[str(number)] for number in range(len(names))]

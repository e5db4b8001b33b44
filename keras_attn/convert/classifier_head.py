"""Conversion of Hugging Face's classification heads of BERT, for texts and tokens."""

from pathlib import Path
from typing import Any

from keras_attn.convert.configuration import CONFIG
from keras_attn.convert.json_files import named_in_errors
from keras_attn.convert.weight_map import WeightMap
from keras_attn.models import Bert, SequenceClassifier, TokenClassifier
from keras_attn.tasks import ClassificationTask, TokenClassificationTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require

CLASSIFIER_HEAD = "classifier."
_SINGLE_LABEL = (None, "single_label_classification")


def text_classifier(
    folder: Path,
    config: dict[str, Any],
    encoder: Bert,
    tokenizer: Tokenizer,
    max_length: int,
    weights: WeightMap,
) -> ClassificationTask:
    """Makes the task of a `BertForSequenceClassification` and maps the head's weights.

    Args:
        folder: Folder of the checkpoint, for error messages.
        config: Its configuration.
        encoder: The model below the head, with a pooler.
        tokenizer: Tokenizer of the texts.
        max_length: Most tokens of a text, start and end included.
        weights: The weight map, to which the head's weights are added.

    Raises:
        UserError: The head does not assign exactly one label to each text.
    """
    path = folder / CONFIG
    problem = config.get("problem_type")
    require(
        problem in _SINGLE_LABEL,
        f"{path}: `problem_type` must be 'single_label_classification'.",
        problem_type=problem,
    )
    with named_in_errors(path):
        labels = label_names(config)
        dropout = _dropout(config, encoder)
        model = SequenceClassifier(encoder, len(labels), "pooler", dropout)
        task = ClassificationTask(model, tokenizer, labels, max_length, with_start=True)
    weights.copy_linear(model.get_layer("output"), CLASSIFIER_HEAD.removesuffix("."))
    return task


def token_classifier(
    folder: Path,
    config: dict[str, Any],
    encoder: Bert,
    tokenizer: Tokenizer,
    max_length: int,
    weights: WeightMap,
) -> TokenClassificationTask:
    """Makes the task of a `BertForTokenClassification` and maps the head's weights.

    The arguments are those of `text_classifier`; the encoder needs no pooler.

    Raises:
        UserError: There are fewer than two labels, or a label is not a single word.
    """
    with named_in_errors(folder / CONFIG):
        labels = label_names(config)
        model = TokenClassifier(encoder, len(labels), _dropout(config, encoder))
        task = TokenClassificationTask(model, tokenizer, labels, max_length)
    weights.copy_linear(model.get_layer("output"), CLASSIFIER_HEAD.removesuffix("."))
    return task


def label_names(config: dict[str, Any]) -> list[str]:
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


def _dropout(config: dict[str, Any], encoder: Bert) -> float:
    dropout = config.get("classifier_dropout")
    return encoder.get_config()["dropout"] if dropout is None else dropout

"""Encoders and their tasks as folders of transformers and sentence-transformers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attn.convert.encoders.family import (
    MASKED,
    OF_QUESTIONS,
    OF_TEXTS,
    OF_TOKENS,
    EncoderFamily,
    head_sizes,
)
from keras_attn.convert.encoders.heads import written_activation_of_scores
from keras_attn.convert.encoders.models import (
    arguments_of,
    attention_keys,
    head_on,
    model_weights,
    text_activation,
)
from keras_attn.convert.encoders.sentence_transformers import written_modules
from keras_attn.convert.encoders.tasks import ends_between, usually_reads_with, written_tokenizer
from keras_attn.convert.files.configuration import CONFIG
from keras_attn.convert.files.outgoing import Outgoing
from keras_attn.convert.files.written_config import (
    computing_config,
    labels_of,
    require_counterparts,
    without_counterpart,
    written_activation,
    written_arguments,
)
from keras_attn.convert.huggingface import ENCODERS
from keras_attn.layers import MultiHeadAttention
from keras_attn.layers.attention.registry import named_attention
from keras_attn.models import Bert, MaskedLanguageModel, SequenceClassifier, TokenClassifier
from keras_attn.tasks import (
    ClassificationTask,
    EmbeddingTask,
    MultiLabelClassificationTask,
    QuestionAnsweringTask,
    RankTask,
    RegressionTask,
    Task,
    TokenClassificationTask,
)
from keras_attn.tokenizers import PipelineTokenizer, Tokenizer
from keras_attn.validation import UserError, require

_HEADS = {
    MaskedLanguageModel: MASKED,
    SequenceClassifier: OF_TEXTS,
    TokenClassifier: OF_TOKENS,
}
_PROBLEMS = {
    ClassificationTask: "single_label_classification",
    MultiLabelClassificationTask: "multi_label_classification",
    RegressionTask: "regression",
}
_POOLER = (
    "Its classifiers of texts have a dense layer over the first vector: train with "
    "`--set model.pooling=pooler`."
)
_TRANSFORM = "Its heads begin with the transform of {}ForMaskedLM: train from such a checkpoint."
# The families in the order in which a model without a tokenizer is taken for one of them.
_FIRST = ("bert", "roberta", "xlm-roberta")
_ORDER = sorted(ENCODERS.values(), key=lambda family: family.model_type not in _FIRST)


def outgoing_encoder(task: Task) -> Outgoing:
    """Describes the folder of a task whose model is an encoder with or without a head.

    Args:
        task: The task.

    Raises:
        UserError: The task has something without a counterpart.
    """
    found: Any = task
    model, tokenizer = found.backbone, found.tokenizers["text"]
    kind = OF_QUESTIONS if isinstance(task, QuestionAnsweringTask) else _HEADS.get(type(model))
    family, files = _family_of(model, kind, tokenizer, found.max_length)
    architecture = _architecture(family, kind)
    padding_id = family.defaults["pad_token_id"]
    if isinstance(tokenizer, PipelineTokenizer):
        padding_id = tokenizer.padding_id
    start, end = (
        number - (0 < number <= padding_id) for number in (tokenizer.start_id, tokenizer.end_id)
    )
    more: dict[str, Any] = {}
    if padding_id:
        more = {"bos_token_id": start, "eos_token_id": end, "sep_token_id": end}
        if "cls_token_id" in family.others:
            more["cls_token_id"] = start
    changes: dict[str, Callable] = {}
    notes: tuple[str, ...] = ()
    if kind in (OF_TEXTS, OF_QUESTIONS):
        _require_as_transformers(found, family, architecture)
        if kind == OF_TEXTS:
            more |= _of_texts(found)
        if isinstance(task, RegressionTask):
            changes = _scaled(family, task)
        if found.pairs:  # without them all is the first segment
            names = ["input_ids", *["token_type_ids"] * found.segments, "attention_mask"]
            files["tokenizer_config.json"] |= {"model_input_names": names}
    elif isinstance(model, TokenClassifier):
        if not isinstance(task, TokenClassificationTask):
            raise UserError(f"A task of kind {found.kind!r} is not written for transformers.")
        more |= labels_of(found.labels)
    elif isinstance(task, EmbeddingTask):
        files |= written_modules(task, architecture)
        model = getattr(model, "encoder", model)  # what is on it is a module of its own
        if model.pooler is None and family.pooler is not None:
            notes = (f"{architecture} of transformers draws a pooler at random: there is none.",)
    outgoing = outgoing_model(model, padding_id, family, more, kind)
    return Outgoing(
        model=outgoing.model,
        weights=outgoing.weights,
        rename=outgoing.rename,
        files={**outgoing.files, **files},
        changes=changes,
        notes=notes,
    )


def outgoing_model(
    model: keras.Model,
    padding_id: int | None = None,
    family: EncoderFamily | None = None,
    more: Mapping[str, Any] | None = None,
    kind: str | None = None,
) -> Outgoing:
    """Describes the folder of a model without its tokenizer.

    Args:
        model: A `Bert`, or a head on one.
        padding_id: The checkpoint's id of padding, by default that of the family. Ids below it are
            one less there, the others the same.
        family: The family; by default the first one that the model belongs to.
        more: Further keys of the configuration.
        kind: Kind of the head, by default that of the model's class.

    Raises:
        UserError: The model has something without a counterpart.
    """
    kind = kind or _HEADS.get(type(model))
    family = family or _family_of(model, kind)[0]
    encoder = getattr(model, "encoder", model)
    architecture = _architecture(family, kind)
    size = encoder.embedding.vocabulary_size
    if padding_id is None:
        padding_id = min(family.defaults["pad_token_id"], size - 1)
    config = _config(family, model, padding_id) | {"architectures": [architecture]}
    config |= _of_classifier(family, model, kind)
    config |= more or {}
    _check(family, model, config, kind)
    rows = [padding_id, *(row for row in range(size) if row != padding_id)]
    weights = model_weights(family, config, model, kind, rows)
    heads = _prefixes_of_head(family, config, kind)

    def rename(name: str) -> str:
        return name if kind is None or name.startswith(heads) else family.prefix + name

    return Outgoing(model=model, weights=weights, rename=rename, files={CONFIG: config})


def _of_classifier(family: EncoderFamily, model: keras.Model, kind: str | None) -> dict[str, Any]:
    """The dropout of a classifier, and its labels by their numbers."""
    if kind in (None, MASKED):
        return {}
    sizes = model.get_config()
    labels = labels_of([f"LABEL_{number}" for number in range(sizes["num_classes"])])
    return labels | {family.classifier_dropout[0]: sizes["dropout"]}


def _family_of(
    model: keras.Model, kind: str | None, tokenizer: Tokenizer | None = None, max_length: int = 0
) -> tuple[EncoderFamily, dict[str, Any]]:
    """The first family that a model and its tokenizer, if given, belong to, with its files."""
    encoder = getattr(model, "encoder", model)
    require(
        isinstance(encoder, Bert),
        "Encoders of transformers are made of `Bert`.",
        model=type(encoder).__name__,
    )
    written_activation(encoder.get_config()["activation"])
    same, reasons = [], []
    for family in (one for one in _ORDER if kind not in one.other_heads):
        reason = _difference(family, model, kind)
        reasons.append(reason)
        if reason is None:
            same.append(family)
    if not same:
        reasons = [_difference(one, model, kind) for one in _of_body(encoder, tokenizer)] + reasons
        nearest = [reason for reason in reasons if isinstance(reason, UserError)]
        if nearest:
            raise nearest[0]
        layers = sorted({type(block.attention).__name__ for block in encoder.blocks})
        listed = ", ".join(family.name for family in ENCODERS.values())
        raise UserError(
            f"No encoder of transformers that is supported ({listed}) has this attention. "
            f"Received: attention={', '.join(layers)}."
        )
    if tokenizer is None:
        return same[0], {}
    refused = []
    for family in sorted(same, key=lambda one: not usually_reads_with(one, tokenizer)):
        try:
            return family, written_tokenizer(
                family, tokenizer, max_length, _architecture(family, kind)
            )
        except UserError as error:
            refused.append(error)
    raise refused[0]


def _of_body(encoder: Bert, tokenizer: Tokenizer | None) -> list[EncoderFamily]:
    """The families that an encoder without a head belongs to, first those with such tokenizers."""
    same = [family for family in _ORDER if _difference(family, encoder, None) is None]
    if tokenizer is None:
        return same
    return sorted(same, key=lambda one: not usually_reads_with(one, tokenizer))


def _difference(
    family: EncoderFamily, model: keras.Model, kind: str | None
) -> UserError | type | None:
    """What a model has and a family has not: an argument, or the class of its attention."""
    encoder = getattr(model, "encoder", model)
    try:
        config = _config(family, model, 0) | _of_classifier(family, model, kind)
        arguments = arguments_of(family, Path(CONFIG), config)
        expected = _attention_of(family, config, arguments)
    except (UserError, AttributeError, TypeError):  # of attention that has other arguments
        return Bert
    for block, layer in zip(encoder.blocks, expected, strict=False):
        if type(block.attention) is not type(layer):
            return type(layer)
        wanted = computing_config(layer)
        for name, value in computing_config(block.attention).items():
            if value != wanted.get(name):
                return without_counterpart(_architecture(family, kind), **{name: value})
    try:
        _check(family, model, config, kind)
    except UserError as error:
        return error
    return None


def _attention_of(
    family: EncoderFamily, config: dict[str, Any], arguments: dict[str, Any]
) -> Sequence[keras.layers.Layer]:
    """The attention of each block that is read from a configuration."""
    sizes = head_sizes(arguments)
    dropout = sizes.pop("dropout")
    attention = family.attention(config, arguments)
    if attention is None:
        attention = MultiHeadAttention(**sizes, dropout=dropout)
    if not isinstance(attention, list):
        attention = [attention] * arguments["num_layers"]
    sizes["max_length"] = arguments["max_length"]
    return [
        named_attention(**layer, **sizes) if isinstance(layer, Mapping) else layer
        for layer in attention
    ]


def _of_encoder(encoder: Bert, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an encoder that a configuration is read as, but for those of heads."""
    given = encoder.get_config()
    free = {name: given[name] for name in ("pooler", "pooler_activation", "attention")}
    return arguments | free


def _config(family: EncoderFamily, model: keras.Model, padding_id: int) -> dict[str, Any]:
    """The configuration of a model, but for its labels."""
    encoder = getattr(model, "encoder", model)
    config = {
        **written_arguments(encoder, family.used, padding=0),
        **attention_keys(encoder.blocks[0].attention),
        **family.written(encoder, model),
        "model_type": family.model_type,
        family.activation_key: written_activation(encoder.get_config()["activation"]),
        "pad_token_id": padding_id,
        "dtype": "float32",
    }
    known = {*family.used, *family.others, *family.only, family.activation_key}
    known |= {"model_type", "pad_token_id", "dtype"}
    config = {key: value for key, value in config.items() if key in known}
    if family.spare_positions:
        config["max_position_embeddings"] += family.first_position(config)
    return config


def _check(
    family: EncoderFamily, model: keras.Model, config: dict[str, Any], kind: str | None
) -> None:
    """Raises unless the configuration is read as the model's arguments."""
    encoder, path = getattr(model, "encoder", model), Path(CONFIG)
    architecture = _architecture(family, kind)
    arguments = arguments_of(family, path, config)
    require_counterparts(encoder, _of_encoder(encoder, arguments), architecture)
    if config.get("type_vocab_size") == 0 and family.used["type_vocab_size"][1]:
        raise without_counterpart(architecture, num_segments=0)
    if kind is None:
        return
    if kind == OF_TEXTS and model.pooling == "pooler" and family.head_transform is None:
        activation = text_activation(family, path, config, arguments)
        found = encoder.get_config()["pooler_activation"]
        if found != activation:
            raise without_counterpart(architecture, pooler_activation=found)
    if kind == OF_TEXTS and family.head_transform is None and model.pooling != "pooler":
        reason = without_counterpart(architecture, pooling=model.pooling)
        raise UserError(f"{reason} {_POOLER}")
    if kind != MASKED and family.head_transform and not model.get_config().get("transform"):
        reason = without_counterpart(architecture, transform=None)
        raise UserError(f"{reason} {_TRANSFORM.format(family.name)}")
    expected = head_on(family, path, config, encoder, kind).get_config()
    require_counterparts(model, expected, architecture)


def _prefixes_of_head(
    family: EncoderFamily, config: Mapping[str, Any], kind: str | None
) -> tuple[str, ...]:
    if kind == MASKED:
        return tuple(family.masked_head(config).prefixes)
    modules = ["classifier", "head", "qa_outputs"]
    if kind == OF_TEXTS and family.text_transform != family.pooler:
        modules.append(family.text_transform)
    return tuple(f"{module.partition('.')[0]}." for module in modules)


def _require_as_transformers(task: Any, family: EncoderFamily, architecture: str) -> None:
    """Raises unless texts and pairs of them are read as the class reads them."""
    if not isinstance(task, (*_PROBLEMS, RankTask, QuestionAnsweringTask)):
        raise without_counterpart(architecture, task=task.kind)
    if not task.with_start:
        raise without_counterpart(architecture, with_start=task.with_start)
    if task.pairs and task.ends_between != ends_between(family):
        raise without_counterpart(architecture, ends_between=task.ends_between)


def _of_texts(task: Any) -> dict[str, Any]:
    """Keys of what a classifier of texts computes."""
    if isinstance(task, RankTask):
        return written_activation_of_scores(task.activation)
    names = task.names if isinstance(task, RegressionTask) else task.labels
    return labels_of(names) | {"problem_type": _PROBLEMS[type(task)]}


def _architecture(family: EncoderFamily, kind: str | None) -> str:
    return f"{family.name}Model" if kind is None else f"{family.name}For{kind}"


def _scaled(family: EncoderFamily, task: RegressionTask) -> dict[str, Callable]:
    """Makes the output layer compute the numbers instead of the standardized ones."""
    means, deviations = np.array(task.means), np.array(task.deviations)
    name = family.text_output
    return {
        f"{name}.weight": lambda kernel: kernel * deviations[:, None],
        f"{name}.bias": lambda bias: bias * deviations + means,
    }

"""Conversion of the text encoders of Hugging Face without their tokenizers."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import keras

from keras_attn.checkpoints import require_values
from keras_attn.convert.encoders.family import (
    MASKED,
    OF_QUESTIONS,
    OF_TEXTS,
    EncoderFamily,
    EncoderNames,
)
from keras_attn.convert.encoders.heads import label_names, map_masked_head
from keras_attn.convert.files.configuration import (
    CONFIG,
    make_model,
    read_activation,
    read_arguments,
    require_sizes_of,
)
from keras_attn.convert.files.json_files import named_in_errors, read_optional_object, token_content
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.layers import HeadTransform
from keras_attn.models import Bert, MaskedLanguageModel, SequenceClassifier, TokenClassifier
from keras_attn.validation import require

_HEADS = {
    "cls.predictions.": "the head of masked language modeling",
    "cls.seq_relationship.": "the head of next-sentence prediction",
    "classifier.": "the classifier",
    "discriminator_predictions.": "the head of replaced-token detection",
    "generator_": "the head of masked language modeling",
    "lm_head.": "the head of masked language modeling",
    "lm_predictions.": "the head of masked language modeling",
    "mask_predictions.": "the head of replaced-token detection",
    "pooler.": "the pooler",
    "pre_classifier.": "the classifier's dense layer",
    "predictions.": "the head of masked language modeling",
    "qa_classifier.": "the head of question answering",
    "qa_outputs.": "the head of question answering",
    "sop_classifier.": "the head of sentence-order prediction",
    "vocab_": "the head of masked language modeling",
    "head.": "the dense layer of the heads",
    "decoder.": "the head of masked language modeling",
}
_ONLY = {"is_encoder_decoder": False}
# Keys of the configuration by arguments of attention layers.
_OF_ATTENTION = {
    "block_length": "block_size",
    "convolution_width": "conv_kernel_size",
    "max_distance": "max_relative_positions",
    "num_buckets": "position_buckets",
    "num_landmarks": "num_landmarks",
    "num_random_blocks": "num_random_blocks",
    "sliding_window": "local_attention",
}


class ConvertedModel(NamedTuple):
    """A converted model.

    Attributes:
        model: The encoder, or the model of its head.
        notes: Notes for the user, one line each.
        padding_id: The checkpoint's id of padding, which is 0 here. Ids below it are one greater
            here; the others are the same.
    """

    model: keras.Model
    notes: tuple[str, ...]
    padding_id: int


def convert_encoder(
    family: EncoderFamily,
    folder: Path,
    config: dict[str, Any],
    kind: str | None,
    padding_id: int | None = None,
    **options: Any,
) -> ConvertedModel:
    """Converts a model without its tokenizer.

    Args:
        family: The family.
        folder: The folder with the configuration and the weights.
        config: The configuration.
        kind: The kind of the head, or `None` for the encoder alone.
        padding_id: The checkpoint's id of padding; by default that of the tokenizer's files or,
            without such files, of the configuration.
        **options: Options of the family.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    path = folder / CONFIG
    unknown = sorted(set(options) - set(family.options))
    require(not unknown, f"{path}: {family.name} has no such options.", options=unknown)
    arguments = arguments_of(family, path, config)
    tensors = SafetensorsFolder(folder)
    names = {family.known_name(name) for name in tensors.shapes}
    pooler = family.pooler if f"{family.pooler}.weight" in names else None
    if family.head_transform is None and (kind == OF_TEXTS or pooler is None):
        # Heads of texts begin as a pooler does, which training may add.
        pooler = family.text_transform if kind == OF_TEXTS else None
        arguments["pooler_activation"] = text_activation(family, path, config, arguments)
    require_sizes_of(arguments, path, family.used, tensors, padding=0)
    keys = _OF_ATTENTION | {name: key for key, (name, _) in family.used.items()}
    with named_in_errors(path, keys):
        attention = family.attention(config, arguments, **options)
        encoder = make_model(
            Bert,
            arguments,
            path,
            family.used,
            tensors,
            padding=0,
            pooler=pooler is not None,
            attention=attention,
        )
    rows = _rows(family, folder, config, arguments["vocabulary_size"], padding_id)
    first = family.first_position(config)
    require(
        not family.spare_positions or rows[0] == first - 1,
        f"{path}: `pad_token_id`, after which positions are counted, must be the id of padding.",
        pad_token_id=first - 1,
        padding_id=rows[0],
    )
    model = head_on(family, path, config, encoder, kind)
    weights = model_weights(family, config, model, kind, rows, tensors)
    left_out = {
        prefix: head
        for prefix, head in _HEADS.items()
        if not any(name.startswith(prefix) for name in weights.shapes)
        and any(name.startswith(prefix) for name in names)
    }
    for prefix in left_out:
        weights.ignore(re.escape(prefix) + ".*")
    weights.fill(model, tensors, family.known_name)
    notes = [f"Not used: {head} ({prefix}*)." for prefix, head in left_out.items()]
    return ConvertedModel(model, (*family.notes(path, config), *notes), rows[0])


def arguments_of(family: EncoderFamily, path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the arguments of `Bert` other than the attention.

    Args:
        family: The family.
        path: The file, for error messages.
        config: Its content.

    Raises:
        UserError: A key is unknown, or has a value that is not supported.
    """
    others = (*family.others, family.activation_key, "pad_token_id", "tie_word_embeddings")
    only = _ONLY | family.only
    found = read_arguments(path, config, family.model_type, family.used, only, others)
    with named_in_errors(path):
        first = family.first_position(config)
    if family.spare_positions:
        found["max_length"] -= first
    activation = read_activation(path, config, family.activation_key, family.activation)
    with named_in_errors(path):
        return found | {"activation": activation} | family.further(config)


def head_on(
    family: EncoderFamily, path: Path, config: dict[str, Any], encoder: Bert, kind: str | None
) -> Any:
    """Makes the model of a head.

    Args:
        family: The family.
        path: The file, for error messages.
        config: Its content.
        encoder: The encoder.
        kind: The kind of the head, or `None` for none.

    Raises:
        UserError: The configuration uses something that is not supported.
    """
    if kind is None:
        return encoder
    if kind == MASKED:
        return _masked(family, path, config, encoder)
    return _classifier(family, path, config, encoder, kind)


def model_weights(
    family: EncoderFamily,
    config: Mapping[str, Any],
    model: Any,
    kind: str | None,
    rows: Sequence[int],
    tensors: SafetensorsFolder | None = None,
) -> WeightMap:
    """Maps the weights of an encoder with or without a head to the tensors of the checkpoint.

    Args:
        family: The family.
        config: The configuration.
        model: The model.
        kind: The kind of the head, or `None` for none.
        rows: The checkpoint's id of each of our tokens.
        tensors: The checkpoint, if one is read, whose copies of tensors are compared.

    Raises:
        UserError: Copies of a tensor differ.
    """
    pooler = family.pooler
    if kind == OF_TEXTS and family.head_transform is None:
        pooler = family.text_transform
    weights = encoder_weights(
        getattr(model, "encoder", model),
        family.names,
        family.mapping(config),
        family.first_position(config),
        rows,
        pooler,
    )
    if kind == MASKED:
        head, embedding = family.masked_head(config), f"{family.names.tokens}.weight"
        map_masked_head(weights, model, tensors, family.known_name, head, rows, embedding)
    elif kind is not None:
        output = family.text_output if kind == OF_TEXTS else "classifier"
        if kind == OF_QUESTIONS and family.head_transform is None:
            output = "qa_outputs"
        weights.copy_linear(model.get_layer("output"), output)
        if family.head_transform is not None:
            transform = model.get_layer("transform")
            weights.copy_linear(transform.dense, "head.dense")
            weights.copy_norm(transform.norm, "head.norm")
    return weights


def attention_keys(attention: keras.layers.Layer) -> dict[str, Any]:
    """Keys of the configuration from the arguments of an attention layer."""
    found = attention.get_config()
    return {key: found[name] for name, key in _OF_ATTENTION.items() if name in found}


def encoder_weights(
    model: Bert,
    names: EncoderNames,
    map_attention: Callable[..., None],
    first_position: int = 0,
    rows: Sequence[int] | None = None,
    pooler: str | None = "pooler.dense",
) -> WeightMap:
    """Maps the weights of an encoder to the tensors of the checkpoint.

    Args:
        model: The encoder.
        names: Modules of its parts.
        map_attention: Maps the projections of an attention layer to the heads.
        first_position: Row of the first position in the table of positions.
        rows: The checkpoint's id of each of our tokens; the same by default.
        pooler: Module of the pooler.
    """
    weights = WeightMap()
    tokens = model.embedding.embeddings
    rows = range(tokens.shape[0]) if rows is None else rows
    weights.copy_rows(tokens, f"{names.tokens}.weight", rows)
    if model.positions is not None:
        positions = model.positions.embeddings
        places = range(first_position, first_position + positions.shape[0])
        weights.copy_rows(positions, f"{names.positions}.weight", places)
    if model.segments is not None:
        weights.copy(model.segments.embeddings, f"{names.segments}.weight")
    weights.copy_norm(model.norm, names.norm)
    if model.embedding_projection is not None:
        weights.copy_linear(model.embedding_projection, names.projection)
    for number, block in enumerate(model.blocks):
        layer, part = block.attention, partial("{}.{}".format, names.block.format(number))
        attention = part(names.attention)
        map_attention(weights, layer, [f"{attention}.{head}" for head in names.heads])
        weights.copy_linear(layer.output_projection, part(names.attention_output))
        if not isinstance(block.attention_residual.norm, keras.layers.Activation):
            weights.copy_norm(block.attention_residual.norm, part(names.attention_norm))
        feed_forward = block.feed_forward
        if feed_forward.gate is None:
            weights.copy_linear(feed_forward.intermediate, part(names.intermediate))
        else:
            halves = [feed_forward.intermediate, feed_forward.gate]
            weights.copy_divided(halves, part(names.intermediate))
        weights.copy_linear(feed_forward.output_projection, part(names.output))
        weights.copy_norm(block.feed_forward_residual.norm, part(names.output_norm))
    _map_distances(weights, model, names)
    if model.last_norm is not None:
        weights.copy_norm(model.last_norm, names.last_norm)
    if model.pooler is not None:
        weights.copy_linear(model.pooler, pooler)
    weights.ignore(r"embeddings\.(position|token_type)_ids")  # position numbers, not learned
    return weights


def _map_distances(weights: WeightMap, model: Bert, names: EncoderNames) -> None:
    """Maps relative positions that have weights, which all blocks share."""
    positions = getattr(model.blocks[0].attention, "relative_positions", None)
    if getattr(positions, "embeddings", None) is None:
        return
    weights.copy(positions.embeddings, f"{names.distances}.weight")
    if getattr(positions, "norm", None) is not None:
        weights.copy_norm(positions.norm, names.distance_norm)


def text_activation(
    family: EncoderFamily, path: Path, config: Mapping[str, Any], arguments: Mapping[str, Any]
) -> str:
    """The activation of a classifier of texts, by its name or by the key of it.

    Args:
        family: The family.
        path: The file, for error messages.
        config: Its content.
        arguments: The arguments of `Bert`.

    Raises:
        UserError: It is not supported.
    """
    activation = family.text_activation or arguments["activation"]
    if activation in family.others:
        return read_activation(path, config, activation, "gelu")
    return activation


def _rows(
    family: EncoderFamily,
    folder: Path,
    config: Mapping[str, Any],
    size: int,
    padding_id: int | None,
) -> list[int]:
    """The checkpoint's ids in the order of ours, where padding is 0."""
    if padding_id is None:
        found = _padding_of_tokenizer(folder)
        padding_id = family.value(config, "pad_token_id", 0) if found is None else found
    require(
        isinstance(padding_id, int) and 0 <= padding_id < size,
        f"{folder}: the id of padding must be one of the {size} tokens.",
        padding_id=padding_id,
    )
    return [padding_id, *(row for row in range(size) if row != padding_id)]


def _padding_of_tokenizer(folder: Path) -> int | None:
    """The id of padding in a tokenizer's files, which may differ from that in `config.json`."""
    config = read_optional_object(folder / "tokenizer_config.json")
    token = token_content(config.get("pad_token")) or "<pad>"
    fast = read_optional_object(folder / "tokenizer.json").get("added_tokens") or ()
    added = {str(one["id"]): one for one in fast} | (config.get("added_tokens_decoder") or {})
    ids = [int(number) for number, one in added.items() if token_content(one) == token]
    return ids[0] if ids else None


def _masked(
    family: EncoderFamily, path: Path, config: Mapping[str, Any], encoder: Bert
) -> MaskedLanguageModel:
    require_values(path, config, tie_word_embeddings=True)
    sizes = encoder.get_config()
    activation = family.masked_activation or sizes["activation"]
    biases = {"transform_bias": True, "norm_bias": True}
    if family.head_transform is not None:
        options = family.head_transform(config)
        activation = options["activation"]
        biases = {"transform_bias": options["use_bias"], "norm_bias": options["norm_bias"]}
    return MaskedLanguageModel(encoder, activation, sizes["epsilon"], **biases)


def _classifier(
    family: EncoderFamily, path: Path, config: dict[str, Any], encoder: Bert, kind: str
) -> keras.Model:
    sizes = encoder.get_config()
    dropouts = [config[key] for key in family.classifier_dropout if config.get(key) is not None]
    dropout = dropouts[0] if dropouts else sizes["dropout"]
    options, pooling = {}, "pooler"
    if family.head_transform is not None:
        transform = dict(family.head_transform(config))
        pooling = transform.pop("pooling")
        options["transform"] = HeadTransform(**transform, epsilon=sizes["epsilon"])
    with named_in_errors(path):
        count = 2 if kind == OF_QUESTIONS else len(label_names(config))
        if kind == OF_TEXTS:
            return SequenceClassifier(encoder, count, pooling, dropout, **options)
        return TokenClassifier(encoder, count, dropout, **options)

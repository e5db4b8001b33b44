"""Conversion of Hugging Face's BERT: configuration, weights and tasks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attn.convert.bert_heads import (
    CLASSIFIER_HEAD,
    MASKED_HEAD,
    head_task,
    map_masked_head,
)
from keras_attn.convert.configuration import (
    CONFIG,
    make_model,
    read_activation,
    read_arguments,
    rows_without_token,
)
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.json_files import require_values
from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.sentence_transformers import embedding_settings, transformer_folder
from keras_attn.convert.weight_map import WeightMap
from keras_attn.convert.word_piece import read_word_piece
from keras_attn.models import Bert, MaskedLanguageModel
from keras_attn.tasks import EmbeddingTask, MaskedLMTask

# Arguments of `Bert` by the key of their value, with its default.
_USED = {
    "vocab_size": ("vocabulary_size", 30_522),
    "num_hidden_layers": ("num_layers", 12),
    "hidden_size": ("hidden_dim", 768),
    "num_attention_heads": ("num_heads", 12),
    "intermediate_size": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_length", 512),
    "type_vocab_size": ("num_segments", 2),
    "hidden_dropout_prob": ("dropout", 0.1),
    "attention_probs_dropout_prob": ("attention_dropout", 0.1),
    "layer_norm_eps": ("epsilon", 1e-12),
}
_ONLY = {"position_embedding_type": "absolute", "is_encoder_decoder": False, "pad_token_id": 0}

_OF_TEXTS, _OF_TOKENS = "BertForSequenceClassification", "BertForTokenClassification"
# Names of the weights of each architecture's head.
_HEAD_OF = {
    "BertForMaskedLM": MASKED_HEAD,
    "BertForPreTraining": MASKED_HEAD,
    _OF_TEXTS: CLASSIFIER_HEAD,
    _OF_TOKENS: CLASSIFIER_HEAD,
}

_HEADS = {
    MASKED_HEAD: "the head of masked language modeling",
    "cls.seq_relationship.": "the head of next-sentence prediction",
    CLASSIFIER_HEAD: "the classifier",
    "qa_outputs.": "the head of question answering",
}
_OLD_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def convert_bert(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a BERT folder of transformers or sentence-transformers.

    Args:
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        A `MaskedLMTask`, a `ClassificationTask` or a `TokenClassificationTask` where the
        configuration names such an architecture; otherwise, and for folders of
        sentence-transformers, an `EmbeddingTask`. Other heads are not used, which a note reports.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    model_folder = transformer_folder(folder)
    path = model_folder / CONFIG
    arguments = bert_arguments(path, config)
    tokenizer = read_word_piece(model_folder)
    notes = rows_without_token(
        model_folder, tokenizer.vocabulary_size, arguments["vocabulary_size"]
    )
    settings = embedding_settings(folder, arguments["max_length"])
    tensors = SafetensorsFolder(model_folder)
    architecture = None if "pooling" in settings else _architecture(config)
    has_pooler = any(_known_name(name).startswith("pooler.") for name in tensors.shapes)
    encoder = make_model(
        Bert,
        arguments,
        path,
        _USED,
        tensors,
        padding=0,
        pooler=has_pooler or architecture == _OF_TEXTS,
    )
    weights = bert_weights(encoder)
    own, length = _HEAD_OF.get(architecture), settings["max_length"]
    if own == CLASSIFIER_HEAD:
        of_tokens = architecture == _OF_TOKENS
        task = head_task(path, config, encoder, tokenizer, length, weights, of_tokens)
    elif own == MASKED_HEAD:
        require_values(path, config, tie_word_embeddings=True)
        model = MaskedLanguageModel(encoder, arguments["activation"], arguments["epsilon"])
        map_masked_head(weights, model, tensors, _known_name)
        task = MaskedLMTask(model, tokenizer, length)
    else:
        task = EmbeddingTask(encoder, tokenizer, **settings)
    others = {prefix: head for prefix, head in _HEADS.items() if prefix != own}
    _fill(task.backbone, weights, tensors, others)
    return Conversion(task, (*notes, *_left_out(tensors, others)))


def bert_arguments(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Reads the arguments of `Bert` from a configuration.

    Args:
        path: The file, for error messages.
        config: Its content.

    Raises:
        UserError: A key is unknown, or has a value that is not supported.
    """
    arguments = read_arguments(path, config, "bert", _USED, _ONLY, ["hidden_act"])
    return arguments | {"activation": read_activation(path, config, "hidden_act", "gelu")}


def bert_weights(model: Bert) -> WeightMap:
    """Maps the weights of a model to the tensors of the checkpoint."""
    weights = WeightMap()
    weights.copy(model.embedding.embeddings, "embeddings.word_embeddings.weight")
    weights.copy(model.positions.embeddings, "embeddings.position_embeddings.weight")
    weights.copy(model.segments.embeddings, "embeddings.token_type_embeddings.weight")
    weights.copy_norm(model.norm, "embeddings.LayerNorm")
    for number, block in enumerate(model.blocks):
        layer = f"encoder.layer.{number}"
        roles = [f"{layer}.attention.self.{role}" for role in ("query", "key", "value")]
        weights.copy_linear(block.attention.projections[0], *roles)
        weights.copy_linear(block.attention.output_projection, f"{layer}.attention.output.dense")
        weights.copy_norm(block.attention_residual.norm, f"{layer}.attention.output.LayerNorm")
        weights.copy_linear(block.feed_forward.intermediate, f"{layer}.intermediate.dense")
        weights.copy_linear(block.feed_forward.output_projection, f"{layer}.output.dense")
        weights.copy_norm(block.feed_forward_residual.norm, f"{layer}.output.LayerNorm")
    if model.pooler is not None:
        weights.copy_linear(model.pooler, "pooler.dense")
    weights.ignore(r"embeddings\.(position|token_type)_ids")  # position numbers, not learned
    return weights


def _fill(
    model: keras.Model, weights: WeightMap, tensors: SafetensorsFolder, left_out: Iterable[str]
) -> None:
    """Copies a checkpoint's weights into a model, except those of unused heads."""
    for head in left_out:
        weights.ignore(head.replace(".", r"\.") + ".*")
    weights.fill(model, tensors, _known_name)


def _architecture(config: Mapping[str, Any]) -> str | None:
    """The architecture, if its head is supported."""
    return next((name for name in config.get("architectures") or () if name in _HEAD_OF), None)


def _known_name(name: str) -> str:
    name = name.removeprefix("bert.")
    for old, new in _OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def _left_out(tensors: SafetensorsFolder, left_out: Mapping[str, str]) -> list[str]:
    return [
        f"Not used: {head} ({prefix}*)."
        for prefix, head in left_out.items()
        if any(name.startswith(prefix) for name in tensors.shapes)
    ]

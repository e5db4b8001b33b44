"""Conversion of Hugging Face's BERT: configuration, weights and tasks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attn.convert.classifier_head import (
    CLASSIFIER_HEAD,
    text_classifier,
    token_classifier,
)
from keras_attn.convert.configuration import (
    CONFIG,
    WITHOUT_EFFECT,
    keys_in_errors,
    read_numbers,
    rows_without_token,
)
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.json_files import named_in_errors, require_known, require_values
from keras_attn.convert.masked_head import check_tied, map_head
from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.sentence_transformers import embedding_settings, transformer_folder
from keras_attn.convert.weight_map import WeightMap
from keras_attn.convert.word_piece import read_word_piece
from keras_attn.models import Bert, MaskedLanguageModel
from keras_attn.models.size_check import check_sizes
from keras_attn.tasks import EmbeddingTask, MaskedLMTask
from keras_attn.validation import require_one_of

_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu"}

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
_ONLY = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
    "auto_map": None,
    "pad_token_id": 0,
    "quantization_config": None,
}
# Keys about training, and about heads that are not used.
_WITHOUT_EFFECT = (
    "classifier_dropout",
    "directionality",
    "gradient_checkpointing",
    "initializer_range",
    "output_past",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "sbert_ce_default_activation_function",
    "sentence_transformers",
    "tie_word_embeddings",
)

_MASKED_HEAD = "cls.predictions."
_OF_TEXTS, _OF_TOKENS = "BertForSequenceClassification", "BertForTokenClassification"
_CLASSIFIERS = {_OF_TEXTS: text_classifier, _OF_TOKENS: token_classifier}
# Names of the weights of each architecture's head.
_HEAD_OF = {
    "BertForMaskedLM": _MASKED_HEAD,
    "BertForPreTraining": _MASKED_HEAD,
    _OF_TEXTS: CLASSIFIER_HEAD,
    _OF_TOKENS: CLASSIFIER_HEAD,
}

_HEADS = {
    _MASKED_HEAD: "the head of masked language modeling",
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
    arguments = bert_arguments(model_folder / CONFIG, config)
    tokenizer = read_word_piece(model_folder)
    notes = rows_without_token(
        model_folder, tokenizer.vocabulary_size, arguments["vocabulary_size"]
    )
    settings = embedding_settings(folder, arguments["max_length"])
    tensors = SafetensorsFolder(model_folder)
    architecture = None if "pooling" in settings else _architecture(config)
    tensors.check_rows(model_folder / CONFIG, vocab_size=arguments["vocabulary_size"])
    tensors.check_layers(model_folder / CONFIG, num_hidden_layers=arguments["num_layers"])
    has_pooler = any(_known_name(name).startswith("pooler.") for name in tensors.shapes)
    with keys_in_errors(model_folder / CONFIG, _USED):
        check_sizes(arguments, lambda: Bert(**arguments), 2 * tensors.parameters)
        encoder = Bert(**arguments, pooler=has_pooler or architecture == _OF_TEXTS)
    weights = bert_weights(encoder)
    if architecture in _CLASSIFIERS:
        make = _CLASSIFIERS[architecture]
        task = make(model_folder, config, encoder, tokenizer, settings["max_length"], weights)
    elif architecture:
        require_values(model_folder / CONFIG, config, tie_word_embeddings=True)
        model = MaskedLanguageModel(encoder, arguments["activation"], arguments["epsilon"])
        map_head(weights, model)
        check_tied(tensors, _known_name)
        task = MaskedLMTask(model, tokenizer, settings["max_length"])
    else:
        task = EmbeddingTask(encoder, tokenizer, **settings)
    own = _HEAD_OF.get(architecture)
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
    require_known(path, config, {*_USED, *_ONLY, *_WITHOUT_EFFECT, *WITHOUT_EFFECT, "hidden_act"})
    require_values(path, config, **_ONLY)
    activation = config.get("hidden_act", "gelu")
    with named_in_errors(path):
        require_one_of("hidden_act", activation, _ACTIVATIONS)
    arguments = {"activation": _ACTIVATIONS[activation]}
    arguments |= read_numbers(path, config, _USED)
    return arguments


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

"""Conversion of Hugging Face's T5: configuration, weights and task."""

import re
from pathlib import Path
from typing import Any

import keras

from keras_attn.checkpoints import require_values
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.files.configuration import (
    CONFIG,
    make_model,
    read_arguments,
    rows_without_token,
)
from keras_attn.convert.files.json_files import require_choice
from keras_attn.convert.files.outgoing import Outgoing
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap, attention_parts
from keras_attn.convert.files.written_config import (
    require_counterparts,
    without_counterpart,
    written_arguments,
    written_as,
)
from keras_attn.convert.generators.generation_file import (
    GENERATION,
    decoding_of,
    longest_target,
    notes_on,
    read_generation,
    written_generation,
)
from keras_attn.convert.tokenizers.sentencepiece_file import read_t5_tokenizer
from keras_attn.convert.tokenizers.written_tokenizers import t5_tokenizer_files
from keras_attn.models import T5
from keras_attn.tasks import Seq2SeqTask
from keras_attn.validation import require

# By `feed_forward_proj`: activation, and whether it is multiplied by a linear projection.
_FEED_FORWARDS = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "gated-gelu": ("gelu_tanh", True),
    "gated-relu": ("relu", True),
    "gated-silu": ("silu", True),
}

# Arguments of `T5` by the key of their value, with its default.
_USED = {
    "vocab_size": ("vocabulary_size", 32_128),
    "num_layers": ("num_layers", 6),
    "num_decoder_layers": ("decoder_layers", None),
    "d_model": ("hidden_dim", 512),
    "num_heads": ("num_heads", 8),
    "d_kv": ("key_dim", 64),
    "d_ff": ("intermediate_dim", 2048),
    "relative_attention_num_buckets": ("num_buckets", 32),
    "relative_attention_max_distance": ("max_distance", 128),
    "dropout_rate": ("dropout", 0.1),
    "layer_norm_epsilon": ("epsilon", 1e-6),
}
_ONLY = {
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
    "is_encoder_decoder": True,
    "pad_token_id": 0,
}
_OTHERS = (
    "dense_act_fn",
    "feed_forward_proj",
    "is_gated_act",
    "scale_decoder_outputs",
    "tie_word_embeddings",
)
_EMBEDDING = "shared.weight"
_ARCHITECTURE = "T5ForConditionalGeneration"
_OUTPUT = "lm_head.weight"
_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
_ATTENTIONS = ("SelfAttention", "EncDecAttention")
_GENERATION = {
    "bad_words_ids": None,
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
    "forced_eos_token_id": 1,
    "renormalize_logits": False,
}
_POSITIONS = 512  # of the published models' training


def convert_t5(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a T5 folder of transformers, version 1.0 or 1.1.

    Ids are one greater than in transformers, because 0 is only padding here, while T5 also uses it
    as the first input of the decoder; tokens are the same.

    Args:
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        A `Seq2SeqTask` with the checkpoint's options of generation, greedily by default.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    arguments = t5_arguments(folder / CONFIG, config)
    tokenizer = read_t5_tokenizer(folder)
    path, options = read_generation(folder, config)
    require_values(path, options, **_GENERATION)
    decoding = decoding_of(path, options, _POSITIONS, longest_target(options, _POSITIONS))
    rows = arguments["vocabulary_size"] - 1
    notes = rows_without_token(folder, tokenizer.vocabulary_size - 1, rows)
    tensors = SafetensorsFolder(folder)
    backbone = make_model(T5, arguments, folder / CONFIG, _USED, tensors)
    has_output = backbone.output_embedding is not None
    weights = t5_weights(backbone, _OUTPUT if _OUTPUT in tensors.shapes else _EMBEDDING)
    for name in (*_COPIES, *(() if has_output else (_OUTPUT,))):
        weights.ignore(re.escape(name))
        if name in tensors.shapes and _EMBEDDING in tensors.shapes:
            tensors.require_same(name, _EMBEDDING)
    weights.fill(backbone, tensors)
    task = Seq2SeqTask(backbone, tokenizer, tokenizer, decoding)
    return Conversion(task, notes + notes_on(path, options, decoding))


def t5_arguments(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Reads the arguments of `T5` from a configuration.

    Args:
        path: The file, for error messages.
        config: Its content.

    Raises:
        UserError: A key is unknown, or has a value that is not supported.
    """
    arguments = read_arguments(path, config, "t5", _USED, _ONLY, _OTHERS)
    kind = require_choice(path, config, "feed_forward_proj", _FEED_FORWARDS, "relu")
    arguments["activation"], arguments["gated"] = _FEED_FORWARDS[kind]
    # They follow from the kind, except in files that were edited by hand.
    inner = "gelu_new" if kind == "gated-gelu" else kind.removeprefix("gated-")
    require_values(path, config, is_gated_act=arguments["gated"], dense_act_fn=inner)
    # Newer files have a separate key, and tie embeddings that are not in the checkpoint.
    key = "scale_decoder_outputs" if "scale_decoder_outputs" in config else "tie_word_embeddings"
    scaled = config.get(key, True)
    require(isinstance(scaled, bool), f"{path}: `{key}` must be true or false.", **{key: scaled})
    arguments["tie_output"] = scaled
    arguments["vocabulary_size"] += 1  # padding
    return arguments


def t5_weights(model: T5, output: str = _OUTPUT) -> WeightMap:
    """Maps the weights of a model to the tensors of a checkpoint with one token less.

    In this package, embeddings are multiplied by the square root of their size, and scores are
    divided by that of the heads' size; in T5 they are not.

    Args:
        model: The model.
        output: Name of the output embedding, where it is not tied.
    """
    config = model.get_config()
    weights = WeightMap()
    shrink = config["hidden_dim"] ** -0.5
    weights.copy_embedding(model.source_embedding.embeddings, _EMBEDDING, shrink)
    if model.output_embedding is not None:
        weights.copy_embedding(model.output_embedding.embeddings, output)

    def attention(layer: keras.layers.Layer, name: str) -> None:
        enlarge = {"query": config["key_dim"] ** 0.5}
        for projection in layer.projections:
            names = [f"{name}.{role[0]}" for role in projection.heads]
            scales = tuple(enlarge.get(role, 1.0) for role in projection.heads)
            weights.copy_linear(projection, *names, scales=scales)
        weights.copy_linear(layer.output_projection, f"{name}.o")

    def feed_forward(layer: keras.layers.Layer, name: str) -> None:
        if layer.gate is None:
            weights.copy_linear(layer.intermediate, f"{name}.wi")
        else:
            weights.copy_linear(layer.intermediate, f"{name}.wi_0")
            weights.copy_linear(layer.gate, f"{name}.wi_1")
        weights.copy_linear(layer.output_projection, f"{name}.wo")

    for side in ("encoder", "decoder"):
        blocks = getattr(model, f"{side}_blocks")
        for number, block in enumerate(blocks):
            part = f"{side}.block.{number}.layer"
            parts = dict(zip(_ATTENTIONS, attention_parts(block), strict=False))
            for place, (name, (layer, norm)) in enumerate(parts.items()):
                attention(layer, f"{part}.{place}.{name}")
                weights.copy(norm.scale, f"{part}.{place}.layer_norm.weight")
            last = f"{part}.{len(parts)}"
            feed_forward(block.feed_forward, f"{last}.DenseReluDense")
            weights.copy(block.feed_forward_residual.norm.scale, f"{last}.layer_norm.weight")
        first, _ = attention_parts(blocks[0])[0]
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        weights.copy(first.relative_positions.embeddings, table)
        norm = getattr(model, f"{side}_norm")
        weights.copy(norm.scale, f"{side}.final_layer_norm.weight")
    # Old checkpoints contain an unused table of distances.
    weights.ignore(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight")
    return weights


def outgoing_t5(task: Seq2SeqTask) -> Outgoing:
    """Describes the folder of a task: the inverse of `convert_t5`.

    Args:
        task: The task, with a `T5`.

    Raises:
        UserError: The task has something without a counterpart.
    """
    model, tokenizer, decoding = task.backbone, task.source_tokenizer, task.decoding
    sizes = model.get_config()
    if task.target_tokenizer.digest != tokenizer.digest:
        raise without_counterpart(_ARCHITECTURE, target_tokenizer="another than of the source")
    parts = sizes["activation"], sizes["gated"]
    kind = written_as("activation and gated", parts, _FEED_FORWARDS)
    scaled = sizes["tie_output"]
    config = written_arguments(model, _USED) | {
        "architectures": [_ARCHITECTURE],
        "model_type": "t5",
        "feed_forward_proj": kind,
        "is_gated_act": sizes["gated"],
        "dense_act_fn": "gelu_new" if kind == "gated-gelu" else kind.removeprefix("gated-"),
        "scale_decoder_outputs": scaled,
        "tie_word_embeddings": scaled,
        "dtype": "float32",
        **_ONLY,
    }
    require_counterparts(model, t5_arguments(Path(CONFIG), config), _ARCHITECTURE)
    options, notes = written_generation(decoding)
    ids = {key: config[key] for key in ("decoder_start_token_id", "eos_token_id", "pad_token_id")}
    if decoding.forced_end_is_free:
        ids["forced_eos_token_id"] = config["eos_token_id"]
    return Outgoing(
        model=model,
        weights=t5_weights(model),
        rename=lambda name: name,
        files={
            CONFIG: config,
            GENERATION: options | {"max_new_tokens": decoding.max_length} | ids,
            **t5_tokenizer_files(tokenizer, _ARCHITECTURE),
        },
        notes=notes,
    )

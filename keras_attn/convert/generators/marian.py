"""Conversion of Hugging Face's Marian: configuration and task."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attn.checkpoints import require_values
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.files.configuration import (
    CONFIG,
    make_model,
    read_activation,
    read_arguments,
    rows_without_token,
)
from keras_attn.convert.files.json_files import read_optional_object
from keras_attn.convert.files.outgoing import Outgoing
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.written_config import (
    require_counterparts,
    written_activation,
    written_arguments,
)
from keras_attn.convert.generators.generation_file import (
    GENERATION,
    decoding_of,
    longest_target,
    notes_on,
    read_generation,
    written_generation,
)
from keras_attn.convert.generators.marian_vocabulary import (
    TOKENIZER_CONFIG,
    MarianVocabulary,
    marian_tokenizer_files,
    read_marian_vocabularies,
    written_marian_rows,
)
from keras_attn.convert.generators.marian_weights import fill_marian, marian_weights, never_predict
from keras_attn.models import Marian
from keras_attn.tasks import Seq2SeqTask
from keras_attn.validation import require

# Arguments of `Marian` by the key of their value, with its default.
_USED = {
    "vocab_size": ("vocabulary_size", 58_101),
    "decoder_vocab_size": ("target_vocabulary_size", None),
    "encoder_layers": ("num_layers", 12),
    "decoder_layers": ("decoder_layers", 12),
    "d_model": ("hidden_dim", 1024),
    "encoder_attention_heads": ("num_heads", 16),
    "decoder_attention_heads": ("decoder_heads", 16),
    "encoder_ffn_dim": ("intermediate_dim", 4096),
    "decoder_ffn_dim": ("decoder_intermediate_dim", 4096),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.0),
    "activation_dropout": ("activation_dropout", 0.0),
}
# Other names of the same.
_ALIASES = {
    "hidden_size": "hidden_dim",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
}
_TRUTHS = {
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
}
_ONLY = {
    "add_final_layer_norm": False,
    "is_encoder_decoder": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
_OTHERS = ("activation_function", "max_position_embeddings")
_ARCHITECTURE = "MarianMTModel"
_IDS = {"decoder_start_token_id": 58_100, "eos_token_id": 0}


def convert_marian(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a Marian folder of transformers.

    Ids begin with the special tokens of this package, followed by the checkpoint's tokens in their
    order; its padding, the first input of its decoder, is the start token. Tokens are the same.

    Args:
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        A `Seq2SeqTask` with the checkpoint's options of generation. Unknown tokens are
        never generated.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    arguments = marian_arguments(folder / CONFIG, config)
    source, target = read_marian_vocabularies(folder)
    size = arguments["vocabulary_size"]
    target_size = arguments["target_vocabulary_size"]
    require(
        target_size is not None or source.path == target.path,
        f"{folder}: separate vocabularies need `share_encoder_decoder_embeddings` to be false.",
    )
    sizes = size - 1, (target_size or size) - 1
    tensors = SafetensorsFolder(folder)
    backbone = make_model(Marian, arguments, folder / CONFIG, _USED, tensors)
    notes = dict.fromkeys(  # one for both sides where they share a vocabulary
        note
        for side, size in zip((source, target), sizes, strict=True)
        for note in rows_without_token(side.path, side.tokens, size)
    )
    rows = source.rows_of(sizes[0]), target.rows_of(sizes[1])
    _check_ids(folder / CONFIG, _IDS | config, target)
    path, options = read_generation(folder, config)
    _check_ids(path, options, target)
    positions = config.get("max_position_embeddings", 1024)
    decoding = decoding_of(path, options, positions, longest_target(options, positions))

    fill_marian(backbone, tensors, *rows)
    if options.get("renormalize_logits") and options.get("bad_words_ids"):
        # The padding, which is banned, has no probability.
        require_values(path, options, min_length=0, no_repeat_ngram_size=0)
        never_predict(backbone, target.tokenizer.start_id)
    task = Seq2SeqTask(backbone, source.tokenizer, target.tokenizer, decoding)
    notes = (*notes, *notes_on(path, options, decoding), *_left_out(folder / TOKENIZER_CONFIG))
    return Conversion(task, notes)


def marian_arguments(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Reads the arguments of `Marian` from a configuration.

    Args:
        path: The file, for error messages.
        config: Its content.

    Raises:
        UserError: A key is unknown, or has a value that is not supported.
    """
    others = {*_ALIASES, *_TRUTHS, *_OTHERS}
    arguments = read_arguments(path, config, "marian", _USED, _ONLY, others)
    truths = {key: config.get(key, default) for key, default in _TRUTHS.items()}
    for key, value in truths.items():
        require(isinstance(value, bool), f"{path}: `{key}` must be true or false.", **{key: value})
    is_shared = truths["share_encoder_decoder_embeddings"]
    is_tied = truths["tie_word_embeddings"]
    require(
        is_tied or not is_shared,
        f"{path}: `tie_word_embeddings` must be true if embeddings are shared.",
        tie_word_embeddings=is_tied,
    )
    require_values(path, config, **{key: arguments[name] for key, name in _ALIASES.items()})
    size = arguments["vocabulary_size"]
    target = arguments["target_vocabulary_size"] or size
    require(
        target == size or not is_shared,
        f"{path}: `decoder_vocab_size` must be `vocab_size` if embeddings are shared.",
        decoder_vocab_size=target,
        vocab_size=size,
    )
    return arguments | {
        "vocabulary_size": size + 1,  # padding
        "target_vocabulary_size": None if is_shared else target + 1,
        "activation": read_activation(path, config, "activation_function", "gelu"),
        "scale_embedding": truths["scale_embedding"],
        "tie_output": is_tied,
    }


def _check_ids(path: Path, options: dict[str, Any], target: MarianVocabulary) -> None:
    """Raises unless generation begins and ends with tokens of the vocabulary."""
    start, end = target.start_id, target.end_id
    ids = {"decoder_start_token_id": start, "eos_token_id": end, "forced_eos_token_id": end}
    for key, expected in ids.items():
        found = options.get(key)
        require(
            found in (None, expected),
            f"{path}: `{key}` must be {expected}, as in {target.path.name}.",
            **{key: found},
        )
    banned = options.get("bad_words_ids")
    require(
        banned in (None, [[start]]),
        f"{path}: `bad_words_ids` must be [[{start}]], the padding of {target.path.name}.",
        bad_words_ids=banned,
    )


def _left_out(path: Path) -> Iterator[str]:
    key = "clean_up_tokenization_spaces"
    if read_optional_object(path).get(key):
        yield f"{path}: `{key}` is not used: texts have the spaces of their pieces."


def outgoing_marian(task: Seq2SeqTask) -> Outgoing:
    """Describes the folder of a task: the inverse of `convert_marian`.

    Args:
        task: The task, with a `Marian`.

    Raises:
        UserError: The task has something without a counterpart.
    """
    model, decoding = task.backbone, task.decoding
    sizes = model.get_config()
    source, target = (
        written_marian_rows(tokenizer, sizes[name] or sizes["vocabulary_size"], _ARCHITECTURE)
        for tokenizer, name in (
            (task.source_tokenizer, "vocabulary_size"),
            (task.target_tokenizer, "target_vocabulary_size"),
        )
    )
    is_shared = sizes["target_vocabulary_size"] is None
    start, end = (target[one] for one in (1, task.target_tokenizer.end_id))
    config = written_arguments(model, _USED) | {
        "architectures": [_ARCHITECTURE],
        "model_type": "marian",
        "activation_function": written_activation(sizes["activation"]),
        "max_position_embeddings": max(decoding.max_source_length, decoding.max_length),
        "scale_embedding": sizes["scale_embedding"],
        "share_encoder_decoder_embeddings": is_shared,
        "tie_word_embeddings": sizes["tie_output"],
        "pad_token_id": start,
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "is_encoder_decoder": True,
        "dtype": "float32",
    }
    require_counterparts(model, marian_arguments(Path(CONFIG), config), _ARCHITECTURE)
    options, notes = written_generation(decoding)
    ids = {key: config[key] for key in (*_IDS, "pad_token_id")} | {"bad_words_ids": [[start]]}
    if decoding.forced_end_is_free:
        ids["forced_eos_token_id"] = end
    return Outgoing(
        model=model,
        weights=marian_weights(model, source, target),
        rename=lambda name: name,
        files={
            CONFIG: config,
            GENERATION: options | {"max_length": decoding.max_length + 1} | ids,
            **marian_tokenizer_files(task.source_tokenizer, task.target_tokenizer, is_shared),
        },
        notes=notes,
    )

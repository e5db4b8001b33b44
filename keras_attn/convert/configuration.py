"""Reading of configurations, for all architectures."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attn.convert.json_files import named_in_errors
from keras_attn.validation import require

CONFIG = "config.json"

WITHOUT_EFFECT = (
    "_attn_implementation_autoset",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cls_token_id",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "model_type",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
)
"""Keys about training, generation and implementation, which do not affect the outputs."""


def read_numbers(
    path: Path, config: Mapping[str, Any], used: Mapping[str, tuple[str, Any]]
) -> dict[str, Any]:
    """Reads arguments that are numbers.

    Args:
        path: The file, for error messages.
        config: Its content.
        used: Our arguments and their defaults by key. Values of arguments with an integer as the
            default must be integers.

    Raises:
        UserError: A value is not a number, is negative, or is a fraction instead of an integer.
    """
    arguments = {}
    for key, (name, default) in used.items():
        arguments[name] = value = config.get(key, default)
        kind, kinds = "an integer", int
        if isinstance(default, float):
            kind, kinds = "a number", int | float
        fits = isinstance(value, kinds) and not isinstance(value, bool) and value >= 0
        require(fits, f"{path}: `{key}` must be {kind}, 0 or more.", **{key: value})
    return arguments


def keys_in_errors(
    path: Path, used: Mapping[str, tuple[str, Any]]
) -> contextlib.AbstractContextManager[None]:
    """Adds the file's name to errors raised inside, and replaces our argument names by its keys.

    Args:
        path: The file.
        used: Our arguments by key, see `read_numbers`.
    """
    return named_in_errors(path, {name: key for key, (name, _) in used.items()})


def rows_without_token(path: Path, tokens: int, rows: int) -> tuple[str, ...]:
    """Notes if most rows of an embedding have no token; rounded-up sizes are usual.

    Args:
        path: The file of the vocabulary, or its folder, for error messages.
        tokens: Number of tokens in the vocabulary.
        rows: Number of rows of the embedding.

    Raises:
        UserError: There are more tokens than rows.
    """
    require(
        tokens <= rows,
        f"{path}: the vocabulary is larger than the embedding.",
        tokens=tokens,
        rows=rows,
    )
    if rows <= 2 * tokens:
        return ()
    return (
        f"{path}: {rows - tokens:,} of the embedding's {rows:,} rows have no token in the "
        "vocabulary, which may belong to another model.",
    )

"""What the configurations of all architectures have in common."""

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
"""Keys about training, generation and how transformers computes, not about what is computed."""


def read_numbers(
    path: Path, config: Mapping[str, Any], used: Mapping[str, tuple[str, Any]]
) -> dict[str, Any]:
    """Reads arguments that are numbers.

    Args:
        path: The file, to be named.
        config: Its content.
        used: The argument by the key of its value, with the default that the key has; where that
            is no fraction, the value is to be none.

    Raises:
        UserError: A value is no number, negative, or a fraction that is to be none.
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
    """Puts the file's name before the message of a `UserError` from within, and its keys into it.

    Args:
        path: The file.
        used: The argument by the key of its value, see `read_numbers`.
    """
    return named_in_errors(path, {name: key for key, (name, _) in used.items()})


def rows_without_token(path: Path, tokens: int, rows: int) -> tuple[str, ...]:
    """Notes that most of an embedding has no token; sizes that were rounded up are usual.

    Args:
        path: The file of the vocabulary, or its folder, to be named.
        tokens: Number of tokens in the vocabulary.
        rows: Number of rows of the embedding.

    Raises:
        UserError: There are more tokens than rows.
    """
    require(
        tokens <= rows,
        f"{path}: the vocabulary does not fit the embedding.",
        tokens=tokens,
        rows=rows,
    )
    if rows <= 2 * tokens:
        return ()
    return (
        f"{path}: of the embedding's {rows:,} rows {rows - tokens:,} have no token in the "
        "vocabulary, which may be another model's.",
    )

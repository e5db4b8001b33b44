"""What the configurations of all architectures have in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
        used: The argument by the key of its value, with the default that the key has.

    Raises:
        UserError: A value is no number, or negative.
    """
    arguments = {}
    for key, (name, default) in used.items():
        arguments[name] = value = config.get(key, default)
        number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        require(number, f"{path}: `{key}` must be a number, 0 or more.", **{key: value})
    return arguments

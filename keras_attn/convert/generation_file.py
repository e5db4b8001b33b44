"""How a checkpoint generates: `generation_config.json`, or the same keys in `config.json`."""

from pathlib import Path
from typing import Any

from keras_attn.convert.configuration import CONFIG
from keras_attn.convert.json_files import named_in_errors, read_object
from keras_attn.tasks import DecodingSettings
from keras_attn.validation import require, require_one_of

GENERATION = "generation_config.json"
_KEYS = {"beams": "num_beams", "no_repeat_ngram": "no_repeat_ngram_size"}  # by our names
_STOPPING = {False: "heuristic", True: "early", "never": "exact"}
# Of these only the value that changes nothing is supported; None is that as well.
_NEUTRAL = {
    "do_sample": False,
    "diversity_penalty": 0.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "guidance_scale": 1.0,
    "num_beam_groups": 1,
    "penalty_alpha": 0.0,
    "repetition_penalty": 1.0,
    **dict.fromkeys(
        (
            "begin_suppress_tokens",
            "constraints",
            "dola_layers",
            "exponential_decay_length_penalty",
            "force_words_ids",
            "forced_bos_token_id",
            "max_time",
            "min_new_tokens",
            "sequence_bias",
            "stop_strings",
            "suppress_tokens",
            "watermarking_config",
        )
    ),
}


def read_generation(folder: Path, config: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Reads the options of generation that are given.

    Args:
        folder: The folder.
        config: Content of its `config.json`, which counts where the other file is missing.

    Returns:
        The file that tells them, and its keys whose values are not null.

    Raises:
        UserError: The file is damaged, or asks for something that is not supported.
    """
    path = folder / GENERATION
    content = read_object(path) if path.is_file() else config
    path = path if path.is_file() else folder / CONFIG
    content = {key: value for key, value in content.items() if value is not None}
    for key, value in _NEUTRAL.items():
        found = content.get(key, value)
        require(found == value, f"{path}: `{key}` must be {value!r} or missing.", **{key: found})
    return path, content


def decoding_of(path: Path, options: dict[str, Any], positions: int) -> DecodingSettings:
    """Makes the settings of a task that generates as transformers does.

    Args:
        path: The file, to be named in errors.
        options: What `read_generation` has read.
        positions: Most tokens of a source, and of what is generated where nothing else is told.

    Raises:
        UserError: A value is out of its range.
    """
    stopping = options.get("early_stopping", False)
    with named_in_errors(path, _KEYS):
        require_one_of("early_stopping", stopping, _STOPPING)
        # Transformers counts the token with which the decoder begins.
        longest = options.get("max_length", positions + 1) - 1
        return DecodingSettings(
            beams=options.get("num_beams", 1),
            length_penalty=options.get("length_penalty", 1.0),
            max_source_length=positions,
            max_length=options.get("max_new_tokens", longest),
            min_length=options.get("min_length", 0),
            length_penalty_form="length",
            stopping=_STOPPING[stopping],
            free_end="forced_eos_token_id" in options,
            no_repeat_ngram=options.get("no_repeat_ngram_size", 0),
        )

"""Generation options of a checkpoint, in `generation_config.json` or `config.json`."""

from pathlib import Path
from typing import Any

from keras_attn.convert.files.configuration import CONFIG
from keras_attn.convert.files.json_files import named_in_errors
from keras_attn.documents import read_json_object
from keras_attn.limits import GENERATED_TOKENS
from keras_attn.tasks import DecodingSettings
from keras_attn.validation import require, require_one_of, require_positive

GENERATION = "generation_config.json"
_KEYS = {"beams": "num_beams", "no_repeat_ngram": "no_repeat_ngram_size"}  # by our names
_TOP_K = 50  # default of transformers
_STOPPING = {False: "heuristic", True: "early", "never": "exact"}
# Only the neutral value of these is supported, or None.
_NEUTRAL = {
    "diversity_penalty": 0.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "guidance_scale": 1.0,
    "num_beam_groups": 1,
    "penalty_alpha": 0.0,
    "typical_p": 1.0,
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
            "min_p",
            "sequence_bias",
            "stop_strings",
            "suppress_tokens",
            "watermarking_config",
        )
    ),
}


def read_generation(folder: Path, config: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Reads the generation options of a checkpoint.

    Args:
        folder: The folder.
        config: Content of its `config.json`, used if the other file is missing.

    Returns:
        The file with the options, and its keys with values other than null.

    Raises:
        UserError: The file is damaged, or uses something that is not supported.
    """
    path = folder / GENERATION
    content = read_json_object(path) if path.is_file() else config
    path = path if path.is_file() else folder / CONFIG
    content = {key: value for key, value in content.items() if value is not None}
    for key, value in _NEUTRAL.items():
        found = content.get(key, value)
        require(found == value, f"{path}: `{key}` must be {value!r} or missing.", **{key: found})
    return path, content


def longest_target(options: dict[str, Any], positions: int) -> int:
    """Returns the most tokens that an encoder-decoder generates, its end included.

    Args:
        options: The options from `read_generation`.
        positions: The default.
    """
    # Transformers also counts the first input of the decoder.
    return options.get("max_new_tokens", options.get("max_length", positions + 1) - 1)


def decoding_of(
    path: Path, options: dict[str, Any], max_source_length: int, max_length: int
) -> DecodingSettings:
    """Makes decoding settings that generate the same texts as transformers.

    Args:
        path: The file, for error messages.
        options: The options from `read_generation`.
        max_source_length: Most tokens of a source.
        max_length: Most generated tokens; checkpoints without a limit have a very large number,
            which is reduced to the limit `GENERATED_TOKENS`.

    Raises:
        UserError: A value is out of its range.
    """
    stopping, draws = options.get("early_stopping", False), options.get("do_sample", False)
    require(isinstance(draws, bool), f"{path}: `do_sample` must be true or false.", do_sample=draws)
    penalty = options.get("repetition_penalty", 1.0)
    require(
        draws or penalty == 1,
        f"{path}: `repetition_penalty` must be 1.0 or missing if `do_sample` is false.",
        repetition_penalty=penalty,
    )
    with named_in_errors(path, _KEYS):
        require_one_of("early_stopping", stopping, _STOPPING)
        beams = options.get("num_beams", 1)
        require_positive(beams=beams, max_length=max_length)
        return DecodingSettings(
            beams=beams,
            length_penalty=options.get("length_penalty", 1.0),
            max_source_length=max_source_length,
            max_length=min(max_length, max(1, GENERATED_TOKENS.value // beams)),
            min_length=options.get("min_length", 0),
            length_penalty_form="length",
            stopping=_STOPPING[stopping],
            forced_end_is_free="forced_eos_token_id" in options,
            no_repeat_ngram=options.get("no_repeat_ngram_size", 0),
            temperature=options.get("temperature", 1.0),
            top_k=options.get("top_k", _TOP_K if draws else 0),
            top_p=options.get("top_p", 1.0),
            repetition_penalty=penalty,
        )


def notes_on(path: Path, options: dict[str, Any], decoding: DecodingSettings) -> tuple[str, ...]:
    """Notes the differences of a task to the defaults of its checkpoint."""
    notes = []
    if options.get("do_sample"):
        notes.append(
            f"{path}: `do_sample` is only applied by `predict --sample`; `predict` searches."
        )
    if longest_target(options, 0) * decoding.beams > GENERATED_TOKENS.value:
        notes.append(f"{path}: at most {decoding.max_length:,} tokens are generated per text.")
    return tuple(notes)


def written_generation(decoding: DecodingSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Writes decoding settings but for their lengths: the inverse of `decoding_of`.

    Args:
        decoding: The settings.

    Returns:
        The options, and notes on the settings that transformers does not have.
    """
    defaults = DecodingSettings()
    draws = decoding.repetition_penalty != 1
    options = {
        "do_sample": draws,
        "num_beams": decoding.beams,
        "min_length": decoding.min_length,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "repetition_penalty": decoding.repetition_penalty,
    }
    of_samples = {name: getattr(decoding, name) for name in ("temperature", "top_k", "top_p")}
    options |= {
        name: value
        for name, value in of_samples.items()
        if draws or value != getattr(defaults, name)
    }
    if decoding.beams > 1:
        stopping = {ours: theirs for theirs, ours in _STOPPING.items()}
        options["length_penalty"] = decoding.length_penalty
        options["early_stopping"] = stopping[decoding.stopping]
    lost = {
        name: getattr(decoding, name)
        for name in ("coverage_penalty", "banned_words")
        if getattr(decoding, name) != getattr(defaults, name)
    }
    form = decoding.length_penalty_form
    if decoding.beams > 1 and decoding.length_penalty and form != "length":
        lost["length_penalty_form"] = form
    notes = [
        f"`generate` of transformers has no counterpart of {name}={value!r}."
        for name, value in lost.items()
    ]
    return options, tuple(notes)

"""Reading of configurations, for all architectures."""

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attn.checkpoints import SUPPORTED_VALUES, require_values
from keras_attn.convert.files.json_files import named_in_errors, require_choice, require_known
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.documents import read_yaml
from keras_attn.models.size_check import check_sizes
from keras_attn.validation import require

CONFIG = "config.json"

ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate"), "gelu_tanh"),
    **dict.fromkeys(("gelu_pytorch_tanh", "gelu_python_tanh"), "gelu_tanh"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    "gelu_10": "clipped_gelu",
    "hardswish": "hard_silu",
    "linear": "linear",
    "mish": "mish",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "relu2": "squared_relu",
    "relu6": "relu6",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}
"""Our names of activations by those of transformers."""

_LAYERS = ("num_layers", "decoder_layers")
_VOCABULARIES = ("vocabulary_size", "target_vocabulary_size")


def read_arguments(
    path: Path,
    config: Mapping[str, Any],
    model_type: str,
    used: Mapping[str, tuple[str, Any]],
    only: Mapping[str, Any],
    others: Collection[str],
) -> dict[str, Any]:
    """Reads a model's arguments that are numbers, and refuses what is not supported.

    Args:
        path: The file, for error messages.
        config: Its content.
        model_type: Name of the architecture in `ignored_keys.yaml`.
        used: Our arguments and their defaults by key. Values must be integers, where the default is
            a fraction numbers, where it is true or false one of these; where it is `None`, so may
            they be.
        only: The only supported value by key; a key may be missing.
        others: Further keys, which are read elsewhere.

    Raises:
        UserError: A key is unknown, or has a value that is not supported; a value is not a number,
            is negative, or is a fraction instead of an integer.
    """
    ignored = _ignored_keys()
    known = {*used, *SUPPORTED_VALUES, *only, *others, *ignored["every"], *ignored[model_type]}
    require_known(path, config, known)
    require_values(path, config, **SUPPORTED_VALUES, **only)
    arguments = {}
    for key, (name, default) in used.items():
        arguments[name] = value = config.get(key, default)
        kind, kinds = "an integer, 0 or more", int
        if isinstance(default, bool):
            kind, kinds = "true or false", bool
        elif isinstance(default, float):
            kind, kinds = "a number, 0 or more", int | float
        fits = isinstance(value, kinds) and value >= 0
        fits &= isinstance(value, bool) == isinstance(default, bool)
        fits |= value is None and default is None
        require(fits, f"{path}: `{key}` must be {kind}.", **{key: value})
    return arguments


@functools.cache
def _ignored_keys() -> dict[str, list[str]]:
    return read_yaml(Path(__file__).parent / "ignored_keys.yaml")


def read_activation(path: Path, config: Mapping[str, Any], key: str, default: str) -> str:
    """Reads the name of an activation.

    Raises:
        UserError: It is not supported.
    """
    return ACTIVATIONS[require_choice(path, config, key, ACTIVATIONS, default)]


def make_model(
    kind: type[keras.Model],
    arguments: Mapping[str, Any],
    path: Path,
    used: Mapping[str, tuple[str, Any]],
    tensors: SafetensorsFolder,
    padding: int = 1,
    **more: Any,
) -> Any:
    """Makes the model of a configuration whose sizes fit the tensors.

    Args:
        kind: The model's class.
        arguments: Its arguments.
        path: The file that they come from, for error messages, which name its keys.
        used: Our arguments by key, see `read_arguments`.
        tensors: The checkpoint.
        padding: Number of rows that its embeddings lack.
        **more: Arguments that are no sizes.

    Raises:
        UserError: No tensor has as many rows as there are tokens, there are more layers than
            tensors, or the model is larger than the checkpoint or otherwise impossible.
    """
    require_sizes_of(arguments, path, used, tensors, padding)
    with named_in_errors(path, {name: key for key, (name, _) in used.items()}):
        check_sizes(arguments, lambda: kind(**arguments), 2 * tensors.parameters)
        return kind(**arguments, **more)


def require_sizes_of(
    arguments: Mapping[str, Any],
    path: Path,
    used: Mapping[str, tuple[str, Any]],
    tensors: SafetensorsFolder,
    padding: int = 1,
) -> None:
    """Raises unless there are tensors for all layers and tokens; see `make_model`."""
    rows = {shape[0] for shape in tensors.shapes.values() if shape}
    most = len(tensors.shapes)
    for key, (name, _) in used.items():
        size = arguments[name] or 0
        require(
            name not in _LAYERS or size <= most,
            f"{path}: `{key}` must not exceed the {most} tensors.",
            **{key: size},
        )
        require(
            name not in _VOCABULARIES or not size or size - padding in rows,
            f"{path}: `{key}` must be the number of rows of a tensor.",
            **{key: size - padding},
        )


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

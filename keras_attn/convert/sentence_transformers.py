"""Pooling and normalization settings of sentence-transformers folders."""

from pathlib import Path
from typing import Any

from keras_attn.convert.json_files import (
    read_list,
    read_optional_object,
    require_known,
    require_values,
)
from keras_attn.documents import read_json_object
from keras_attn.validation import require, require_one_of

_MODULES = "modules.json"
_PREFIX = "pooling_mode_"
# Our poolings by the names of theirs; as truth values, and as the one text of later versions.
_POOLINGS = {
    "mean_tokens": "mean",
    "max_tokens": "max",
    "cls_token": "first",
    "mean": "mean",
    "max": "max",
    "cls": "first",
}
_POOLING_KEYS = ("word_embedding_dimension", "embedding_dimension", "pooling_mode")


def transformer_folder(folder: Path) -> Path:
    """Finds the folder of the model: the given one, or a folder in it.

    Raises:
        UserError: `modules.json` is damaged, or does not begin with a transformer.
    """
    modules = _modules(folder)
    if not modules:
        return folder
    kind, path = modules[0]
    require(
        kind == "Transformer",
        f"{folder / _MODULES}: the first module must be a Transformer.",
        type=kind,
    )
    return path


def embedding_settings(folder: Path, positions: int) -> dict[str, Any]:
    """Reads the arguments of `EmbeddingTask` beside the model and its tokenizer.

    Without files of sentence-transformers these are its defaults (mean pooling and vectors of
    length 1), and texts may be as long as the model's positions allow.

    Args:
        folder: The folder.
        positions: Number of the model's positions.

    Raises:
        UserError: There is a module other than pooling and normalization, or the pooling mode is
            not supported.
    """
    modules = _modules(folder)
    model_folder = transformer_folder(folder)
    sizes = read_optional_object(model_folder / "sentence_bert_config.json")
    limit = sizes.get("max_seq_length") or _length_of_tokenizer(model_folder) or positions
    settings = {"max_length": min(limit, positions), "truncate": True}
    if not modules:
        return settings
    _check_texts_are_plain(folder, model_folder, sizes)
    kinds = [kind for kind, _ in modules]
    require(
        kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]),
        f"{folder / _MODULES}: the modules must be Transformer, Pooling and, at most, Normalize.",
        modules=kinds,
    )
    return settings | {"pooling": _pooling(modules[1][1]), "normalize": len(kinds) == 3}


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """Kind and folder of each module; none where there is no such file."""
    path = folder / _MODULES
    if not path.is_file():
        return []
    modules = read_list(path)
    for module in modules:
        whole = isinstance(module, dict) and {"type", "path"} <= set(module)
        require(whole, f"{path}: each module must have a type and a path.", module=module)
    return [(module["type"].rpartition(".")[2], folder / module["path"]) for module in modules]


def _pooling(folder: Path) -> str:
    path = folder / "config.json"
    config = read_json_object(path)
    flags = {
        key.removeprefix(_PREFIX): value for key, value in config.items() if key.startswith(_PREFIX)
    }
    require_known(
        path, config, (*_POOLING_KEYS, "include_prompt", *(_PREFIX + key for key in flags))
    )
    require_values(path, config, include_prompt=True)
    chosen = [key for key, value in flags.items() if value]
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        chosen += [modes] if isinstance(modes, str) else list(modes)
    require(len(chosen) == 1, f"{path}: there must be exactly one pooling mode.", chosen=chosen)
    require_one_of(f"pooling mode of {path}", chosen[0], _POOLINGS)
    return _POOLINGS[chosen[0]]


def _check_texts_are_plain(folder: Path, model_folder: Path, sizes: dict[str, Any]) -> None:
    """Checks that texts are not changed before the tokenizer."""
    path = folder / "config_sentence_transformers.json"
    prompt = read_optional_object(path).get("default_prompt_name")
    require(prompt is None, f"{path}: a default prompt is not supported.", prompt=prompt)
    if sizes.get("do_lower_case"):
        path = model_folder / "tokenizer_config.json"
        require_values(path, read_optional_object(path), do_lower_case=True)


def _length_of_tokenizer(folder: Path) -> int | None:
    path = folder / "tokenizer_config.json"
    found = read_optional_object(path).get("model_max_length")
    require(
        found is None or (isinstance(found, int | float) and found > 0),
        f"{path}: `model_max_length` must be a number above 0.",
        model_max_length=found,
    )
    return found

"""First look at a checkpoint, before TensorFlow is imported: a refusal takes no time."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from keras_attn.documents import read_json, read_json_object
from keras_attn.validation import UserError, require

MODEL_TYPES = (
    *("albert", "bert", "big_bird", "camembert", "deberta-v2", "deit", "distilbert", "electra"),
    *("gpt2", "longformer", "marian", "modernbert", "mpnet", "nystromformer", "roberta", "t5"),
    *("vit", "xlm-roberta"),
)
"""The `model_type` of all checkpoints that are converted."""

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
"""Files of the weights: all of them, or the shard of each."""

SUPPORTED_VALUES = {
    "add_cross_attention": False,
    "auto_map": None,
    "is_decoder": False,
    "position_embedding_type": "absolute",
    "pruned_heads": {},
    "quantization_config": None,
}
"""The only supported value of some keys of every configuration, which may be missing."""

LINES, VOCABULARY, MERGES = "vocab.txt", "vocab.json", "merges.txt"
"""Files of a tokenizer that is no `tokenizer.json`."""

SENTENCE_PIECES = ("sentencepiece.bpe.model", "spiece.model", "spm.model")
"""Files of such a tokenizer by themselves."""

_CONFIG, _MODULES, _FAST = "config.json", "modules.json", "tokenizer.json"
_TOKENIZERS = (_FAST, LINES, VOCABULARY, *SENTENCE_PIECES)
_OTHER_FILES = ("deit", "marian", "vit")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_NAME_ON_THE_HUB = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?")


def check_checkpoint(folder: str | Path) -> Path:
    """Refuses what is no folder of a supported model.

    Args:
        folder: The folder.

    Returns:
        Its `config.json`, or that of the transformer of sentence-transformers.

    Raises:
        UserError: There is no such folder, which for a name on the Hub the message explains, its
            models are not supported, or it lacks weights or a tokenizer.

    Examples:
        >>> check_checkpoint("bert").name  # a folder of `save_pretrained`
        'config.json'
    """
    text, folder = str(folder), Path(folder)
    if not folder.exists():
        raise UserError(f"{text} does not exist.{_where_to_get(text)}")
    require(
        folder.is_dir(),
        "A checkpoint must be a folder with config.json, or g2p_en's .npz file.",
        file=text,
    )
    path = _transformer(folder) / _CONFIG
    require(
        path.exists(),
        f"{folder} has no {_CONFIG}: a checkpoint is a folder written by `save_pretrained`.",
    )
    config = read_json_object(path)
    model_type = config.get("model_type")
    require_model_type(path, model_type, MODEL_TYPES)
    require_values(path, config, **SUPPORTED_VALUES)
    require_weights(path.parent)
    if model_type not in _OTHER_FILES:
        require_tokenizer(path.parent)
    return path


def require_model_type(path: Path, model_type: Any, supported: Collection[str]) -> None:
    """Refuses an architecture that is not supported, and suggests no other.

    Args:
        path: The file, for error messages.
        model_type: The architecture.
        supported: Those that are supported.

    Raises:
        UserError: It is not among them.
    """
    require(
        model_type in supported,
        f"{path}: this `model_type` is not supported; supported are "
        f"{', '.join(sorted(supported))}.",
        model_type=model_type,
    )


def require_values(path: Path, content: Mapping[str, Any], **values: Any) -> None:
    """Refuses options with unsupported values.

    Args:
        path: The file, for error messages.
        content: Its content.
        **values: The only supported value by key; a key may be missing.

    Raises:
        UserError: There is another value.
    """
    for key, value in values.items():
        found = content.get(key, value)
        require(found == value, f"{path}: `{key}` must be {value!r}.", **{key: found})


def require_weights(folder: Path) -> dict[str, str] | None:
    """Refuses a folder without safetensors, or with damaged ones.

    Args:
        folder: The folder.

    Returns:
        The name of each tensor's file by the index, or `None` where all are in one file.

    Raises:
        UserError: It has none, where pickles are named, or a file is missing or damaged.
    """
    if (folder / WEIGHTS).is_file():
        _require_safetensors(folder / WEIGHTS)
        return None
    if (folder / INDEX).is_file():
        index = _index(folder / INDEX)
        for name in sorted(set(index.values())):
            _require_safetensors(folder / name)
        return index
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    require(
        not pickles,
        f"{folder} contains no {WEIGHTS}, only pickles, which are never opened because they can "
        "run code: save the model as safetensors.",
        found=pickles[:3],
    )
    raise UserError(f"{folder} contains neither {WEIGHTS} nor {INDEX}.")


def _index(path: Path) -> dict[str, str]:
    names = read_json_object(path).get("weight_map")
    require(isinstance(names, dict), f"{path}: `weight_map` must contain the file of each tensor.")
    for tensor, name in names.items():
        require(
            isinstance(name, str) and Path(name).name == name,
            f"{path}: `weight_map` must only list files of its folder.",
            **{tensor: name},
        )
    return names


def _require_safetensors(path: Path) -> None:
    try:
        with safe_open(path, "np"):  # which checks that the header describes the file
            pass
    except FileNotFoundError:
        raise UserError(f"{path}: no such file, although {INDEX} lists it.") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged or not a safetensors file: {error}.") from error


def require_tokenizer(folder: Path) -> None:
    """Refuses a folder without any file of a tokenizer.

    Args:
        folder: The folder.

    Raises:
        UserError: It has none.
    """
    require(
        any((folder / name).is_file() for name in _TOKENIZERS),
        f"{folder}: no tokenizer file ({_FAST}, {LINES}, {VOCABULARY} with {MERGES}, or "
        f"{', '.join(SENTENCE_PIECES[:-1])} or {SENTENCE_PIECES[-1]}).",
    )


def _transformer(folder: Path) -> Path:
    """The folder of the first module of sentence-transformers, or the folder itself."""
    path = folder / _MODULES
    modules = read_json(path) if path.is_file() else None
    first = modules[0] if isinstance(modules, list) and modules else None
    first = first if isinstance(first, dict) else {}
    place, kind = first.get("path"), str(first.get("type")).rpartition(".")[2]
    if not isinstance(place, str):
        return folder
    require(kind == "Transformer", f"{path}: the first module must be a Transformer.", type=kind)
    return folder / place


def _where_to_get(name: str) -> str:
    """What to do with the name of a model on the Hub."""
    if not _NAME_ON_THE_HUB.fullmatch(name):
        return ""
    own = name.rpartition("/")[2]
    return (
        f" A checkpoint is a local folder, and nothing is downloaded: `hf download {name} "
        f"--local-dir {own}` (in older versions `huggingface-cli download`), `snapshot_download` "
        "of huggingface_hub, and `save_pretrained` of transformers write one."
    )

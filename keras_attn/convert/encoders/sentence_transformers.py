"""Modules of sentence-transformers folders behind the transformer, and prompts."""

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import save

from keras_attn.checkpoints import require_values
from keras_attn.convert.files.json_files import (
    named_in_errors,
    read_list,
    read_optional_object,
    require_known,
)
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.convert.files.written_config import without_counterpart
from keras_attn.documents import read_json_object
from keras_attn.layers.activations import serialize_activation
from keras_attn.models import PooledEncoder
from keras_attn.tasks import EmbeddingTask
from keras_attn.validation import is_integer, require, require_one_of

_MODULES = "modules.json"
_PREFIX = "pooling_mode_"
# Their poolings by the names of ours, in the order of the vectors: as truth values, and as texts of
# later versions.
_MODES = {
    "first": ("cls_token", "cls"),
    "max": ("max_tokens", "max"),
    "mean": ("mean_tokens", "mean"),
    "mean_sqrt": ("mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    "weighted_mean": ("weightedmean_tokens", "weightedmean"),
    "last": ("lasttoken", "lasttoken"),
}
_POOLINGS = {flag: ours for ours, (flag, _) in _MODES.items()}
_POOLINGS |= {name: ours for ours, (_, name) in _MODES.items()}
_ACTIVATIONS = {
    "GELU": "gelu",
    "Identity": "linear",
    "ReLU": "relu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}
_DENSE_KEYS = ("in_features", "out_features", "bias", "activation_function")
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
        UserError: There is a module other than pooling, dense layers and normalization, or the
            pooling mode is not supported.
    """
    modules = _modules(folder)
    model_folder = transformer_folder(folder)
    sizes = read_optional_object(model_folder / "sentence_bert_config.json")
    limit = sizes.get("max_seq_length") or _length_of_tokenizer(model_folder) or positions
    settings = {"max_length": min(limit, positions), "truncate": True}
    if not modules:
        return settings
    _check_texts_are_plain(model_folder, sizes)
    kinds = [kind for kind, _ in modules]
    kinds = [kind for kind in kinds if kind != "Dropout"]
    normalizes = kinds[-1] == "Normalize"
    between = kinds[2 : len(kinds) - normalizes]
    require(
        kinds[:2] == ["Transformer", "Pooling"] and set(between) <= {"Dense"},
        f"{folder / _MODULES}: the modules must be Transformer, Pooling, any number of Dense and, "
        "at most, Normalize.",
        modules=kinds,
    )
    pooling = _pooling(next(path for kind, path in modules if kind == "Pooling"))
    return settings | _prompts(folder) | {"pooling": pooling, "normalize": normalizes}


def with_dense_layers(folder: Path, encoder: keras.Model, settings: dict[str, Any]) -> keras.Model:
    """Puts the folder's dense layers on an encoder, if it has any.

    Args:
        folder: The folder.
        encoder: The encoder.
        settings: What `embedding_settings` returned; the pooling becomes that of the model.

    Returns:
        The encoder, or a `PooledEncoder`.

    Raises:
        UserError: A file is missing or damaged, or sizes do not fit.
    """
    folders = [path for kind, path in _modules(folder) if kind == "Dense"]
    if not folders:
        return encoder
    dense = [_dense(path) for path in folders]
    model = PooledEncoder(encoder, settings["pooling"], dense)
    for path, layer in zip(folders, model.pooler, strict=True):
        weights = WeightMap()
        weights.copy_linear(layer, "linear")
        weights.fill(layer, SafetensorsFolder(path))
    settings["pooling"] = "pooler"
    return model


def _dense(folder: Path) -> dict[str, Any]:
    """Arguments of a dense layer."""
    path = folder / "config.json"
    config = read_json_object(path)
    names = ("module_input_name", "module_output_name")
    require_known(path, config, (*_DENSE_KEYS, *names))
    require_values(path, config, **dict.fromkeys(names, "sentence_embedding"))
    activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    require_one_of(f"activation_function of {path}", activation, _ACTIVATIONS)
    units, bias = config.get("out_features"), config.get("bias", True)
    require(
        is_integer(units) and units > 0 and isinstance(bias, bool),
        f"{path}: `out_features` must be a positive integer, and `bias` true or false.",
        out_features=units,
        bias=bias,
    )
    return {"units": units, "use_bias": bias, "activation": _ACTIVATIONS[activation]}


def _prompts(folder: Path) -> dict[str, Any]:
    """The prompts by name, and the name of the default one."""
    path = folder / "config_sentence_transformers.json"
    config = read_optional_object(path)
    prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
    require(
        isinstance(prompts, dict) and all(isinstance(text, str) for text in prompts.values()),
        f"{path}: `prompts` must be texts by name.",
        prompts=prompts,
    )
    names = {name: re.sub(r"\W", "_", name) for name in prompts}
    with named_in_errors(path, {"default_prompt": "default_prompt_name"}):
        require(
            default is None or default in prompts,
            "`default_prompt` must be the name of a prompt.",
            default_prompt=default,
        )
    return {
        "prompts": {names[name]: text for name, text in prompts.items()},
        "default_prompt": names.get(default),
    }


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


def _pooling(folder: Path) -> str | list[str]:
    path = folder / "config.json"
    config = read_json_object(path)
    flags = {
        key.removeprefix(_PREFIX): value for key, value in config.items() if key.startswith(_PREFIX)
    }
    require_known(
        path, config, (*_POOLING_KEYS, "include_prompt", *(_PREFIX + key for key in flags))
    )
    require_values(path, config, include_prompt=True)
    # In the order of the known ones, which is that of the vectors.
    chosen = [key for key in (*_POOLINGS, *(flags.keys() - _POOLINGS.keys())) if flags.get(key)]
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        chosen += [modes] if isinstance(modes, str) else list(modes)
    require(bool(chosen), f"{path}: there must be a pooling mode.", chosen=chosen)
    for mode in chosen:
        require_one_of(f"pooling mode of {path}", mode, _POOLINGS)
    poolings = [_POOLINGS[mode] for mode in chosen]
    return poolings[0] if len(poolings) == 1 else poolings


def _check_texts_are_plain(model_folder: Path, sizes: dict[str, Any]) -> None:
    """Checks that texts are not changed before the tokenizer."""
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


def written_modules(task: EmbeddingTask, architecture: str) -> dict[str, Any]:
    """The files of sentence-transformers: the inverse of `embedding_settings`.

    Args:
        task: The task.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The pooling has no counterpart.
    """
    model: Any = task.backbone
    pooling, dense = task.pooling, []
    if pooling == "pooler" and isinstance(model, PooledEncoder):
        pooling, dense = model.get_config()["pooling"], model.pooler
    poolings = [pooling] if isinstance(pooling, str) else pooling
    parts = [("mean", "max") if pooling == "mean_max" else (pooling,) for pooling in poolings]
    poolings = [pooling for part in parts for pooling in part]
    for pooling in poolings:
        if pooling not in _MODES:
            raise without_counterpart(f"Pooling on {architecture}", pooling=pooling)
    kinds = ["Transformer", "Pooling", *["Dense"] * len(dense), *["Normalize"] * task.normalize]
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds) if number)]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    width = model.hidden_dim
    if len(poolings) == 1:
        modes = {f"{_PREFIX}{flag}": ours == poolings[0] for ours, (flag, _) in _MODES.items()}
    else:
        modes = {"pooling_mode": [_MODES[pooling][1] for pooling in poolings]}
    files = {
        _MODULES: modules,
        "1_Pooling/config.json": {"word_embedding_dimension": width, **modes},
        "config_sentence_transformers.json": {
            "prompts": task.prompts,
            "default_prompt_name": task.default_prompt,
        },
        "sentence_bert_config.json": {"max_seq_length": task.max_length, "do_lower_case": False},
    }
    for path, layer in zip(paths[2:], dense, strict=False):
        files |= _written_dense(path, layer)
    return files | ({paths[-1]: None} if task.normalize else {})


def _written_dense(path: str, layer: Any) -> dict[str, Any]:
    """The files of a dense layer's folder."""
    activation = serialize_activation(layer.activation)
    names = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
    if activation not in names:
        raise without_counterpart("Dense of sentence-transformers", activation=activation)
    module = "linear" if activation == "linear" else "activation"
    weights = WeightMap()
    weights.copy_linear(layer, "linear")
    tensors = {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in weights.tensors()}
    features, units = layer.kernel.shape
    config = {
        "in_features": features,
        "out_features": units,
        "bias": layer.use_bias,
        "activation_function": f"torch.nn.modules.{module}.{names[activation]}",
    }
    return {
        f"{path}/config.json": config,
        f"{path}/model.safetensors": save(tensors, metadata={"format": "pt"}),
    }

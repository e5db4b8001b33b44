"""Writing of models and tasks as folders of Hugging Face."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import save_file

from keras_attn.checkpoints import INDEX, WEIGHTS
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.files import replaced_folder
from keras_attn.validation import UserError, require

SHARD_BYTES = 5_000_000_000
"""Most bytes of a file of weights, as in transformers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outgoing:
    """What is written to a folder.

    Attributes:
        model: The model.
        weights: The map of its weights.
        rename: Converts a tensor's name in the map to its name in the checkpoint.
        files: Other files by their paths: bytes, or what is written as JSON; `None` for a folder.
        changes: By name in the map, what is written in place of a tensor.
        notes: Notes for the user, one line each.
    """

    model: keras.Model
    weights: WeightMap
    rename: Callable[[str], str]
    files: Mapping[str, Any]
    changes: Mapping[str, Callable[[np.ndarray], np.ndarray]] = dataclasses.field(
        default_factory=dict
    )
    notes: tuple[str, ...] = ()

    def write(self, folder: str | Path) -> None:
        """Writes the folder under a temporary name, and renames it.

        Args:
            folder: The folder; it must be new, empty or contain a checkpoint and nothing else.

        Raises:
            UserError: The folder contains something else or cannot be written, or the model has
                weights without a counterpart.
        """
        folder = Path(folder).resolve()
        self._check_free(folder)
        self.weights.require_whole(self.model)
        try:
            with replaced_folder(folder) as temporary:
                for name, content in self.files.items():
                    _write(temporary / name, content)
                self._write_tensors(temporary)
        except OSError as error:
            reason = error.strerror or " ".join(str(error).split())[:200]
            raise UserError(f"The checkpoint cannot be saved in {folder}: {reason}.") from error

    def _check_free(self, folder: Path) -> None:
        require(
            not folder.exists() or folder.is_dir(),
            "A checkpoint is saved in a folder.",
            folder=str(folder),
        )
        found = {path.name for path in folder.iterdir()} if folder.exists() else set()
        own = {name.partition("/")[0] for name in self.files} | {INDEX}
        others = sorted(name for name in found - own if not name.endswith(".safetensors"))
        require(
            not others and (not found or "config.json" in found),
            "The folder to save a checkpoint in must be new, empty or contain only a checkpoint.",
            folder=str(folder),
            found=(others or sorted(found))[:3],
        )

    def _write_tensors(self, folder: Path) -> None:
        """Writes one file, or several with an index, with one of them in memory at a time."""
        shards = _shards(self.weights.shapes)
        file_of = {
            name: WEIGHTS
            if len(shards) == 1
            else f"model-{number:05}-of-{len(shards):05}.safetensors"
            for number, names in enumerate(shards, start=1)
            for name in names
        }
        shard: dict[str, np.ndarray] = {}
        for name, tensor in self.weights.tensors():
            changed = self.changes.get(name, lambda same: same)(tensor)
            shard[self.rename(name)] = np.ascontiguousarray(changed, np.float32)
            if name == shards[0][-1]:
                save_file(shard, folder / file_of[name], metadata={"format": "pt"})
                del shards[0]
                shard.clear()
        if len(set(file_of.values())) > 1:
            total = 4 * sum(map(int, map(np.prod, self.weights.shapes.values())))
            names = {self.rename(name): file for name, file in file_of.items()}
            _write(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": names})


def _shards(shapes: Mapping[str, tuple[int, ...]]) -> list[list[str]]:
    """Names of the tensors in each file, in their order."""
    shards: list[list[str]] = [[]]
    size = 0
    for name, shape in shapes.items():
        size += 4 * int(np.prod(shape))
        if size > SHARD_BYTES and shards[-1]:
            shards.append([])
            size = 4 * int(np.prod(shape))
        shards[-1].append(name)
    return shards


def _write(path: Path, content: Any) -> None:
    (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        text = json.dumps(content, ensure_ascii=False, indent=2)
        path.write_text(text + "\n", encoding="utf-8")

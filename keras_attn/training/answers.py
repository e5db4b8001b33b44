"""Answers of teachers to the texts of a run, written once into its folder."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.documents import parse_json
from keras_attn.files import replaced_file, write_text
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError

CHUNK = 2048
"""Number of answers in a file."""


@dataclass
class RunAnswers:
    """Keeps what teachers answer, in files of JSON lines that show each input with its answer.

    The chief of several workers asks the teachers, and the others read the files. What an
    interrupted run has written is used again.

    Attributes:
        folder: Folder of the files; `None` to keep nothing.
        workers: The workers of the run.
    """

    folder: Path | None = None
    workers: Workers | None = None

    def texts(self, name: str, inputs: Sequence[str], ask: Callable[[list[str]], list]) -> list:
        """Returns the answers to inputs, from files as far as there are some.

        Args:
            name: Beginning of the names of the files.
            inputs: The inputs.
            ask: Returns the answers to some inputs: texts, or lists of texts or numbers.
        """
        answers: list = []
        for begin in range(0, len(inputs), CHUNK):
            part = list(inputs[begin : begin + CHUNK])
            answers += self._kept(f"{name}-{begin // CHUNK:05}.jsonl", part, ask)
            print(f"   answers: {len(answers):,} of {len(inputs):,}", flush=True)
        return answers

    def array(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Returns an array, from its file if there is one.

        Args:
            name: Name of the file.
            make: Makes the array.
        """
        if self.folder is None:
            return make()
        path = self.folder / f"{name}.npy"
        if self._writes and not path.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            with replaced_file(path) as temporary, temporary.open("wb") as file:
                np.save(file, make())
        self._wait()
        return np.load(path)

    @property
    def _writes(self) -> bool:
        return self.workers is None or self.workers.is_chief

    def _wait(self) -> None:
        if self.workers is not None:
            self.workers.barrier()

    def _kept(self, name: str, inputs: list[str], ask: Callable[[list[str]], list]) -> list:
        if self.folder is None:
            return ask(inputs)
        path = self.folder / name
        if self._writes and _read(path, inputs) is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            rows = zip(inputs, ask(inputs), strict=True)
            lines = (
                json.dumps({"input": one, "answer": answer}, ensure_ascii=False)
                for one, answer in rows
            )
            write_text(path, "".join(f"{line}\n" for line in lines))
        self._wait()
        found = _read(path, inputs)
        if found is None:
            raise UserError(f"{path}: the answers of teachers are missing or of other texts.")
        return found


def _read(path: Path, inputs: list[str]) -> list[Any] | None:
    """The answers in a file; `None` if it is missing, or has those to other inputs."""
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    rows = [parse_json(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    if [row.get("input") for row in rows] != inputs:
        return None
    return [row["answer"] for row in rows]

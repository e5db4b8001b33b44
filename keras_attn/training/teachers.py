"""Teachers of a run: loaded, checked and identified by their checksums."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from keras_attn.tasks import Task, task_folder
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.run_settings import RunSettings
from keras_attn.validation import require


def load_teachers(settings: RunSettings, kind: str) -> list[Task]:
    """Loads the teachers of a run.

    Args:
        settings: The settings of the run.
        kind: Name of the task that they must be.

    Returns:
        The teachers, in the precision of the run; none without distillation.

    Raises:
        UserError: A teacher is missing or another task, or not the one that the run began with.
    """
    if settings.distillation is None:
        return []
    teachers = []
    for path in settings.distillation.teachers:
        teacher = Task.load(task_folder(path), dtype=settings.training.precision)
        require(
            teacher.kind == kind,
            f"A teacher must be a task of kind {kind}.",
            teacher=path,
            found=teacher.kind,
        )
        teachers.append(teacher)
    return teachers


def with_checksums(settings: RunSettings, teachers: Sequence[Task]) -> RunSettings:
    """Records the checksums of teachers, or compares them with those that are recorded.

    Args:
        settings: The settings of the run.
        teachers: Its teachers.

    Raises:
        UserError: The run began with other teachers.
    """
    if not teachers:
        return settings
    how, found = settings.distillation, [checksum(teacher) for teacher in teachers]
    others = [
        path
        for path, one in zip(how.teachers, found, strict=True)
        if how.checksums and one not in how.checksums
    ]
    require(
        how.checksums in ([], found),
        "The teachers must be those that the run began with, in the same order; start a new run, "
        "without `distillation.checksums`, for others.",
        teachers=others or how.teachers,
    )
    return settings.replace(distillation=dataclasses.replace(how, checksums=found))


def checksum(task: Task) -> str:
    """Computes a checksum of a task's weights and tokenizers, equal wherever it is stored."""
    digest = hashlib.sha256(type(task).__name__.encode())
    for role in sorted(task.tokenizers):
        digest.update(task.tokenizers[role].digest.encode())
    for weight in task.backbone.get_weights():
        kept = weight if weight.dtype.kind != "f" else weight.astype(np.float32)
        digest.update(str(kept.shape).encode() + np.ascontiguousarray(kept).tobytes())
    return digest.hexdigest()[:16]


def check_tokenizers(tokenizers: Mapping[str, Tokenizer], teachers: Sequence[Task]) -> None:
    """Raises unless teachers and student read and write the same tokens.

    Args:
        tokenizers: The student's tokenizers by role.
        teachers: The teachers.
    """
    for teacher in teachers:
        for role, tokenizer in tokenizers.items():
            other = teacher.tokenizers[role]
            require(
                other.digest == tokenizer.digest,
                "Teacher and student must have the same tokenizers for soft targets of tokens or "
                "texts that both read; a student of a preset takes the teacher's.",
                tokenizer=role,
                teacher=f"{other.vocabulary_size:,} tokens",
                student=f"{tokenizer.vocabulary_size:,} tokens",
            )

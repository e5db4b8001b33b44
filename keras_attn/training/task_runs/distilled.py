"""The part of runs that learn from teachers."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from keras_attn.data import Pairs
from keras_attn.tasks import Task, ensemble
from keras_attn.tasks.texts import check_positions
from keras_attn.tokenizers import Tokenizer
from keras_attn.training.answers import RunAnswers
from keras_attn.training.distillation_settings import JOIN, WORD, DistillationSettings
from keras_attn.training.loop.teaching import Teaching
from keras_attn.training.loop.validation_set import ValidationSet
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.run_texts import read_lines
from keras_attn.training.task_runs.soft_targets import SoftTargets
from keras_attn.validation import require

_WEIGHT = 0.5  # of soft targets


class DistilledRun:
    """The part of a `TaskRun` that distills teachers into a student."""

    name: str
    roles: ClassVar[tuple[str, ...]]
    lengths: ClassVar[Mapping[str, str]]
    columns: ClassVar[tuple[str, ...]]
    task: Callable[..., Task]

    soft_targets: ClassVar[SoftTargets | None] = None
    """What a student learns from teachers; `None` for tasks without distillation."""

    generates_targets: ClassVar[bool] = False
    """Whether teachers can generate the targets."""

    shares_tokens: ClassVar[bool] = True
    """Whether teachers read the student's tokens, so that they need the same tokenizers."""

    no_answer: ClassVar[Any] = None
    """Placeholder for the target of a text that has none; `None` if texts must have one."""

    alike: ClassVar[tuple[str, ...]] = ()
    """Attributes of the tasks in which teachers and student must agree."""

    def distillation(self, settings: RunSettings) -> DistillationSettings | None:
        """Completes the settings of distillation.

        Args:
            settings: The settings of the run.

        Raises:
            UserError: The task has no such distillation.
        """
        how, targets = settings.distillation, self.soft_targets
        unlabeled = settings.data.unlabeled
        require(
            not unlabeled or (how is not None and self.no_answer is not None),
            "`data.unlabeled` is for tasks whose targets teachers (`--teacher`) can give to texts.",
            task=self.name,
            teachers=how and how.teachers,
        )
        if how is None:
            return None
        require(
            targets is not None,
            f"The task {self.name!r} has no distillation.",
            teachers=how.teachers,
        )
        require(
            how.kind == WORD or self.generates_targets,
            f"The task {self.name!r} has no sequences: `distillation.kind` must be 'word'.",
            kind=how.kind,
        )
        require(
            how.temperature is None or targets.activation is not None,
            f"The task {self.name!r} has no probabilities, and no `distillation.temperature`.",
            temperature=how.temperature,
        )
        return dataclasses.replace(
            how,
            temperature=how.temperature or targets.temperature,
            weight=how.weight or (1.0 if unlabeled and how.kind == WORD else _WEIGHT),
        )

    def read_unlabeled(self, data: DataSettings) -> Pairs:
        """Reads texts without targets.

        Args:
            data: Where they come from.

        Raises:
            UserError: A file is missing or malformed, or has no text.
        """
        role, *others = self.columns
        columns = data.columns
        if columns is not None:
            require(
                role in columns and set(columns) <= {role, *others},
                f"Of data without targets one column is read, `{role}`.",
                columns=columns,
            )
            columns = {role: columns[role]}
        lines = read_lines(data.train, dataclasses.replace(data, columns=columns), role)
        texts = list(dict.fromkeys(lines.texts))  # an answer for each
        return Pairs(texts, [self.no_answer] * len(texts), lines.name, lines.skipped)

    def answered(
        self,
        settings: RunSettings,
        texts: dict[str, Any],
        teachers: Sequence[Task],
        answers: RunAnswers,
    ) -> dict[str, Any]:
        """Gives texts the answers of teachers as targets, if they have none or are to get others.

        Args:
            settings: The settings of the run.
            texts: The texts by part.
            teachers: The teachers.
            answers: Keeps the answers.
        """
        data, how = settings.data, settings.distillation
        parts = ["train"] if data.unlabeled or (how and how.is_generated) else []
        if data.unlabeled and data.valid is None:
            parts += [part for part in ("validation",) if part in texts]
        found = dict(texts)
        for part in parts:
            found[part] = self.with_answers(settings, part, texts[part], teachers, answers)
        return found

    def with_answers(
        self,
        settings: RunSettings,
        part: str,
        texts: Pairs,
        teachers: Sequence[Task],
        answers: RunAnswers,
    ) -> Pairs:
        """Gives the texts of a part the answers of teachers (see `answered`)."""
        how = settings.distillation
        teacher = ensemble(teachers) if len(teachers) > 1 else teachers[0]
        inputs = list(dict.fromkeys(texts.sources))
        read = self.readable(teacher, inputs)
        if len(read) < len(inputs):
            left = len(inputs) - len(read)
            print(f"   teachers: {left:,} texts are too long for them and left out", flush=True)
        require(bool(read), "No text is short enough for the teachers.", texts=len(inputs))
        targets = answers.texts(part, read, lambda some: self.ask(teacher, some, how.beams))
        targets = [tuple(one) if isinstance(one, list) else one for one in targets]
        if how.targets == JOIN and not settings.data.unlabeled:
            read, targets = [*texts.sources, *read], [*texts.targets, *targets]
        return dataclasses.replace(texts, sources=read, targets=targets)

    def readable(self, teacher: Task, inputs: list[str]) -> list[str]:
        """The inputs that a teacher can read."""
        return inputs

    def ask(self, teacher: Task, inputs: list[str], beams: int | None) -> list:
        """Asks a teacher for the targets of inputs.

        Args:
            teacher: The teacher.
            inputs: The inputs.
            beams: Width of the beam search; the teacher's own by default.
        """
        return teacher.predict(inputs)

    def student(
        self,
        settings: RunSettings,
        texts: Any,
        tokenizers: Mapping[str, Tokenizer],
        teacher: Task,
    ) -> Task:
        """Makes an untrained task that reads and answers as a teacher does."""
        return self.task(settings, texts, tokenizers, None)

    def check_texts_of_student(self, texts: Any, teacher: Task) -> None:
        """Raises unless a teacher knows what there is to learn in training texts."""

    def teaching(
        self,
        settings: RunSettings,
        texts: Any,
        task: Task,
        teachers: Sequence[Task],
        answers: RunAnswers,
    ) -> Teaching:
        """Makes the soft targets of teachers for a student.

        Args:
            settings: The settings of the run, complete.
            texts: The training texts.
            task: The student.
            teachers: The teachers.
            answers: Keeps what teachers compute once.

        Raises:
            UserError: A teacher reads or answers in another way than the student.
        """
        longest = max((getattr(settings.data, name) for name in self.lengths.values()), default=0)
        for teacher in teachers:
            self.check_teacher(task, teacher)
            message = "The teacher's positions must hold the training texts."
            check_positions(teacher.backbone, longest, message, longest=longest)
        outputs = [self.teacher_outputs(task, teacher) for teacher in teachers]
        return self.soft_targets.teaching(outputs, settings.distillation)

    def taught_validation(
        self,
        settings: RunSettings,
        texts: Any,
        held_out: Any,
        task: Task,
        teachers: Sequence[Task],
        answers: RunAnswers,
        validation: ValidationSet,
    ) -> ValidationSet:
        """Returns the validation set, measured by the teachers if its texts have no targets."""
        return validation

    def check_teacher(self, task: Task, teacher: Task) -> None:
        """Raises unless a teacher reads what the student reads, in the same way."""
        self.require_same(task, teacher, *self.alike)

    def require_same(self, task: Task, teacher: Task, *names: str) -> None:
        """Raises unless attributes of a teacher are those of the student."""
        for name in names:
            expected = getattr(task, name)
            require(
                getattr(teacher, name) == expected,
                f"Teacher and student must have the same `{name}`.",
                teacher=getattr(teacher, name),
                student=expected,
            )

    def teacher_outputs(self, task: Task, teacher: Task) -> Callable:
        """A function from inputs and labels of a batch to a teacher's outputs, as the student's."""
        size = task.tokenizers[self.roles[-1]].vocabulary_size

        def outputs(inputs: Any, labels: Any) -> Any:
            return teacher.backbone(inputs, training=False)[..., :size]

        return outputs

"""Settings of distillation: the teachers of a run, and how a student learns from them."""

import dataclasses

from keras_attn.training.typed_fields import check_numbers, check_types
from keras_attn.validation import require, require_one_of

WORD, SEQUENCE, BOTH = KINDS = ("word", "sequence", "both")
REPLACE, JOIN = TARGETS = ("replace", "join")
COSINE, MSE = VECTORS = ("cosine", "mse")


@dataclasses.dataclass(frozen=True)
class DistillationSettings:
    """What a student learns from its teachers.

    Attributes:
        teachers: Runs or task folders of the same task. Their probabilities are averaged.
        kind: `"word"`: soft targets, the teachers' probabilities of each label or token, in every
            update. For text-to-text tasks also `"sequence"`: the texts that the teachers generate
            with beam search, written once into the run folder, as targets; or `"both"`.
        temperature: Value by which logits of teachers and student are divided for soft targets; by
            default 1 for generated tokens, otherwise 2.
        weight: Weight of the soft targets in the loss, in (0, 1], against the true labels; by
            default 0.5, and 1 for data without labels.
        targets: Whether the teachers' texts `"replace"` the targets of the data or `"join"` them.
        beams: Width of the teachers' beam search; by default that of the first teacher.
        vectors: Embeddings: `"cosine"` for 1 - cosine of the teachers' vectors and the student's,
            or `"mse"` for their mean squared error.
        checksums: Checksums of the teachers, which a run records at its beginning; a resumed run
            needs the same teachers.

    Examples:
        >>> DistillationSettings(["runs/large"], temperature=3.0).kind
        'word'
        >>> DistillationSettings([])
        Traceback (most recent call last):
            ...
        keras_attn.validation.UserError: Distillation needs teachers (`--teacher`). Received: ...
    """

    teachers: list[str] = dataclasses.field(default_factory=list)
    kind: str = WORD
    temperature: float | None = None
    weight: float | None = None
    targets: str = REPLACE
    beams: int | None = None
    vectors: str = COSINE
    checksums: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        check_types(self)
        require(
            bool(self.teachers),
            "Distillation needs teachers (`--teacher`).",
            teachers=self.teachers,
        )
        check_numbers(self, positive=("beams",), above_zero=("temperature", "weight"))
        require(
            self.weight is None or self.weight <= 1,
            "`weight` must be above 0, and at most 1.",
            weight=self.weight,
        )
        require_one_of("kind", self.kind, KINDS)
        require_one_of("targets", self.targets, TARGETS)
        require_one_of("vectors", self.vectors, VECTORS)

    @property
    def is_soft(self) -> bool:
        """Whether the teachers give soft targets in every update."""
        return self.kind != SEQUENCE

    @property
    def is_generated(self) -> bool:
        """Whether the teachers generate targets."""
        return self.kind != WORD

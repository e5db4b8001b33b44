"""Updates of the weights, whose sums are fetched later, while the device computes the next."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import keras
import numpy as np

from keras_attn.data import EpochPlan, Examples
from keras_attn.training.loop.step import UPDATE_VALUES, TrainingStep
from keras_attn.training.reporting.diagnosis import first_failure
from keras_attn.training.state import TrainingState
from keras_attn.validation import UserError


@dataclass
class Updates:
    """Makes updates and adds what they return to the state of the run.

    Attributes:
        step: Makes one update.
        model: The model that is trained.
        loss: Its loss, as for `TrainingStep`.
        state: The state of the run.
        skips_failures: Whether an update without finite gradients is skipped, as loss scaling
            does, instead of being an error.
        read: What the updates that were fetched have read, by unit: target tokens, or rows and
            their parts (`Examples.read_units`); callers may clear it.
    """

    step: TrainingStep
    model: keras.Model
    loss: Callable
    state: TrainingState
    skips_failures: bool
    read: Counter[str] = field(default_factory=Counter)
    _pending: list = field(default_factory=list, init=False)

    def make(self, batches: list, examples: Examples, plan: EpochPlan) -> None:
        """Makes one update from the next batches of an epoch.

        Args:
            batches: The batches, as for `TrainingStep`.
            examples: The examples of the epoch.
            plan: Its batches.
        """
        origin = (examples, plan, self.state.batch, len(batches))
        self._pending.append((self.step(batches), *origin))
        self.state.step += 1
        self.state.batch += len(batches)

    def fetch(self) -> None:
        """Adds the sums of all updates to the state; waits for the device.

        Raises:
            UserError: A loss or a gradient is not finite.
        """
        for tensor, *origin in self._pending:
            values = dict(zip(UPDATE_VALUES, map(float, tensor.numpy()), strict=True))
            loss, norm = values["loss"], values["gradient_norm"]
            if math.isfinite(loss) and math.isfinite(norm):
                self.state.add(values)
            elif not self.skips_failures:
                self._fail(loss, norm, *origin)
            self._count(values["tokens"], *origin)
        self._pending = []

    def _count(
        self, labels: float, examples: Examples, plan: EpochPlan, begin: int, count: int
    ) -> None:
        """Counts what an update has read."""
        if examples.read_units is None:
            self.read["tokens"] += labels
            return
        rows = np.concatenate([plan[begin + number] for number in range(count)])
        parts = sum(int(side.lengths_of(rows).sum()) for side in examples.sides.values())
        self.read.update(dict(zip(examples.read_units, (len(rows), parts), strict=True)))

    def _fail(
        self, loss: float, norm: float, examples: Examples, plan: EpochPlan, begin: int, count: int
    ) -> NoReturn:
        """Names the batch and the layer whose loss or gradient is not finite."""
        batches = [examples.assemble(plan[begin + number]) for number in range(count)]
        findings = [first_failure(self.model, self.loss, *batch) for batch in batches]
        found = next(filter(None, findings), "With other dropout all values of it are finite.")
        raise UserError(
            f"The loss is no longer a number in batch {begin + 1:,} of epoch "
            f"{self.state.epoch + 1}. {found} A lower `learning_rate` or more `warmup_steps` may "
            f"help. Received: loss={loss}, gradient_norm={norm}."
        )

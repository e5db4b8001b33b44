"""Plans of the epochs of a training."""

import tensorflow as tf

from keras_attn.data import EpochPlan, Examples, padding_share, plan_epoch
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.workers.strategy import compiles_whole_updates, resolve_jit


class EpochPlans:
    """The batches of each epoch; those of the last epoch that was asked for are kept.

    Args:
        examples: The training examples.
        settings: The settings of the training.
        strategy: The devices that train.

    Attributes:
        examples: The training examples.
        static_shapes: Whether batches are padded to few shapes, for XLA.
    """

    def __init__(
        self, examples: Examples, settings: TrainingSettings, strategy: tf.distribute.Strategy
    ) -> None:
        self.examples = examples
        self.static_shapes = compiles_whole_updates(strategy) or resolve_jit(settings.jit) == "on"
        self._settings = settings
        self._last: tuple[int, EpochPlan, float] | None = None

    def of(self, epoch: int) -> tuple[EpochPlan, float]:
        """Plans an epoch.

        Args:
            epoch: Its number, from 0.

        Returns:
            Its batches, and the fraction of their tokens that is padding.
        """
        if self._last is None or self._last[0] != epoch:
            numbers = self._settings.batch_tokens, self._settings.seed, epoch
            plan = plan_epoch(self.examples, *numbers, static_shapes=self.static_shapes)
            self._last = epoch, plan, padding_share(self.examples, plan)["total"]
        return self._last[1:]

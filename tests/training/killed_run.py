"""Run with `python -m`: trains a stand-in with dropout and may kill itself as SIGKILL would.

Arguments: run folder, step after which to die (0 for never), and "resume" or nothing.
"""

import os
import signal
import sys

import keras

from keras_attn.training import Trainer
from tests.training.stand_in import StandInTask, examples, settings, validation_set


class Die(keras.callbacks.Callback):
    """SIGKILL after an update, or in the middle of writing the next checkpoint."""

    def __init__(self, step):
        super().__init__()
        self.step = step
        self.seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    folder, step, *rest = sys.argv[1:]
    keras.utils.set_random_seed(7 if not rest else 8)  # a resumed run needs no luck
    numbers = settings(
        epochs=3,
        log_every=3,
        checkpoint_every=4,
        accumulate_steps=2,
        average_last=2,
        deterministic=True,
        label_smoothing=0.1,
    )
    callbacks = [Die(int(step))] if int(step) else []
    trainer = Trainer(StandInTask(dropout=0.3), numbers, folder, callbacks)
    result = trainer.fit(examples(101), validation_set(), resume=bool(rest))
    print(result)

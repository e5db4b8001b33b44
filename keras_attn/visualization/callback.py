"""Images of attention for TensorBoard, as training goes on."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_attn.tasks import Task
from keras_attn.validation import UserError, require, require_positive
from keras_attn.visualization.picture import png_images
from keras_attn.visualization.text_attention import (
    TextAttention,
    model_attention,
    text_attention,
)


class AttentionImages(keras.callbacks.Callback):
    """Writes what a model attends to for TensorBoard, before training and after epochs.

    It goes to `fit` of Keras and to `keras_attn.training.Trainer` alike. Training goes on as
    without it. Needs the extra `viz`.

    Args:
        folder: Where TensorBoard looks.
        task: The task whose model is trained, to see texts with their tokens.
        texts: What the task reads, each an image of its own.
        targets: For each text what a decoder reads; what the task predicts by then, by default.
        inputs: Instead of a task, what the trained model is called with; the first example is
            shown.
        every: Number of epochs from one image to the next.

    Raises:
        UserError: There are neither texts of a task nor inputs, or both, targets for other texts,
            or `every` is not positive.
    """

    def __init__(
        self,
        folder: str | Path,
        task: Task | None = None,
        texts: Sequence[str] = (),
        targets: Sequence[str] | None = None,
        inputs: Any = None,
        every: int = 1,
    ):
        super().__init__()
        require(
            (inputs is None) == (task is not None and len(texts) > 0),
            "Images of attention need a `task` with `texts`, or `inputs` of a model.",
            task=task,
            texts=list(texts),
            inputs_given=inputs is not None,
        )
        require(
            targets is None or len(targets) == len(texts),
            "Each text needs one target.",
            texts=len(texts),
            targets=None if targets is None else len(targets),
        )
        require_positive(every=every)
        self._folder = str(folder)
        self._task = task
        self._texts = list(texts)
        self._targets = [None] * len(self._texts) if targets is None else list(targets)
        self._inputs = inputs
        self._every = every
        self._writer = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        """Writes the first images."""
        self._writer = tf.summary.create_file_writer(self._folder)
        self._write(0)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Writes images after some epochs, numbered from 1."""
        if (epoch + 1) % self._every == 0:
            self._write(epoch + 1)

    def on_train_end(self, logs: dict | None = None) -> None:
        """Flushes everything."""
        self._writer.close()

    def _write(self, step: int) -> None:
        with self._writer.as_default(step=step):
            for number, attention in enumerate(self._attentions(), 1):
                if isinstance(attention, UserError):  # what is predicted so far cannot be read
                    tf.summary.text(f"attention/{number}", str(attention))
                    continue
                for group, image in png_images(attention):
                    pixels = tf.io.decode_png(image, channels=3)[None]
                    tf.summary.image(f"attention/{number}/{group}", pixels)
        self._writer.flush()

    def _attentions(self) -> Iterator[TextAttention | UserError]:
        if self._task is None:
            yield model_attention(self.model, self._inputs)
        for text, target in zip(self._texts, self._targets, strict=True):
            try:
                yield text_attention(self._task, text, target)
            except UserError as error:
                yield error

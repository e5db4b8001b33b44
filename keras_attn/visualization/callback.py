"""Callback that writes images of attention for TensorBoard."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_attn.tasks import Task
from keras_attn.validation import UserError, require, require_positive
from keras_attn.visualization.picture import png_images
from keras_attn.visualization.text_attention import TextAttention, model_attention, text_attention


class AttentionImages(keras.callbacks.Callback):
    """Writes images of a model's attention for TensorBoard, before training and after epochs.

    Use it with `fit` of Keras or with `keras_attn.training.Trainer`. It does not affect training.
    Needs the extra `viz`.

    Args:
        folder: TensorBoard's log folder.
        task: The task whose model is trained, to show texts with their tokens.
        texts: Texts for the task, with an image for each.
        targets: For each text the text that a decoder reads; the task's current prediction by
            default.
        inputs: Inputs of the trained model, instead of a task; the first example is shown.
        every: Number of epochs between images.

    Raises:
        UserError: There are neither texts of a task nor inputs, or both; the numbers of texts and
            targets differ; or `every` is not positive.

    Examples:
        >>> encoder = TransformerEncoder(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> model = SequenceClassifier(encoder, num_classes=2)
        >>> model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        >>> ids, labels = np.array([[5, 7, 3], [4, 6, 0]]), np.array([0, 1])
        >>> images = AttentionImages("logs", inputs={"token_ids": ids[:1]})
        >>> history = model.fit({"token_ids": ids}, labels, callbacks=[images], verbose=0)
        >>> # `tensorboard --logdir logs` shows the images
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
            "Images of attention need either a `task` with `texts`, or `inputs` of a model.",
            task=task,
            texts=list(texts),
            inputs_given=inputs is not None,
        )
        require(
            targets is None or len(targets) == len(texts),
            "Each text needs exactly one target.",
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
                if isinstance(attention, UserError):  # the current prediction cannot be read
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

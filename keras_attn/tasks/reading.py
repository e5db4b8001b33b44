"""What the words of a command line, or the lines of a file, stand for."""

from keras_attn.data import read_images
from keras_attn.tasks.image_classification import ImageClassificationTask


def read_inputs(kind: str, words: list[str]) -> list[str] | list[bytes]:
    """Gives a task's inputs: words are texts themselves, or name the files of images.

    Args:
        kind: The kind of the task, exported or not.
        words: The words or lines.

    Returns:
        What the task's `predict` takes.

    Raises:
        UserError: There is no such file, or it holds no image.
    """
    return read_images(words) if kind == ImageClassificationTask.kind else words

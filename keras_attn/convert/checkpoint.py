"""Conversion of any supported checkpoint."""

from pathlib import Path

from keras_attn.convert.conversion import Conversion
from keras_attn.convert.g2p_en import from_g2p_en
from keras_attn.convert.huggingface import convert_huggingface


def convert_checkpoint(path: str | Path) -> Conversion:
    """Converts a checkpoint to a task.

    Args:
        path: A folder of Hugging Face (see `convert_huggingface`), or the `.npz` file of g2p_en
            (see `from_g2p_en`).

    Returns:
        The task, with notes for the user.

    Raises:
        UserError: Something is missing, damaged or not supported; one line that names it.

    Examples:
        >>> task, notes = convert_checkpoint("checkpoint20.npz")  # of the package g2p_en
        >>> type(task).__name__, notes
        ('Seq2SeqTask', ())
        >>> task.save("converted/g2p_en")  # `keras_attn.load` reads it
    """
    path = Path(path)
    return Conversion(from_g2p_en(path)) if path.suffix == ".npz" else convert_huggingface(path)

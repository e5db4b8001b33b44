"""Made-up tasks that show what a mechanism can remember."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_attn.data.files import Pairs
from keras_attn.validation import require, require_positive

NOT_TAGGED = "_"
"""Tag of words that are not judged."""

_CLOSENESS = (
    0.01  # of questions to the pairs, as in the paper's program: n to the power of this - 1
)


def load_recall(
    length: int = 64,
    pairs: int = 8,
    values: int = 64,
    min_length: int | None = None,
    min_pairs: int | None = None,
    seed: int = 0,
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
) -> dict[str, Pairs]:
    """Generates multi-query associative recall; the same arguments always give the same data.

    A text is a list of keys, each followed by its value, and then words among which every key is
    asked for once: its tag is the value. Questions come soon after the pairs more often than late.
    All other words, random values, are not judged.

    Args:
        length: Number of words of a text.
        pairs: Number of pairs of a key and a value, at most a quarter of the length.
        values: Number of different values. There are as many keys, or twice as many as pairs.
        min_length: Least number of words, by default `length`: that of each text is `length`
            halved a random number of times.
        min_pairs: Least number of pairs, by default `pairs`: that of each text is `pairs` halved a
            random number of times, as far as the text has room.
        seed: Seed of the random generator.
        train: Number of texts to train on.
        validation: Number of texts to validate on.
        test: Number of texts to test on.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: A size is not positive, or there is no room for the questions.

    Examples:
        >>> parts = load_recall(length=12, pairs=2, values=3, train=1, validation=1, test=1)
        >>> parts["train"].sources[0]
        'k1 v1 k2 v0 v0 v0 k1 v0 v0 v2 k2 v2'
        >>> parts["train"].targets[0]
        '_ _ _ _ _ _ v1 _ _ _ v0 _'

    Reference:
        Arora et al., 2023, https://arxiv.org/abs/2312.04927, section 3 and appendix C.
    """
    require_positive(length=length, pairs=pairs, values=values)
    require(
        4 * pairs <= length,
        "`pairs` must be at most a quarter of `length`: both pairs and questions need room.",
        pairs=pairs,
        length=length,
    )
    keys = max(values, 2 * pairs)
    key_words, value_words = _words("k", keys), _words("v", values)
    lengths = _halved("length", length, min_length)
    counts = _halved("pairs", pairs, min_pairs)
    require(
        4 * counts[-1] <= lengths[-1],
        "`min_pairs` must be at most a quarter of `min_length`: all texts need room.",
        min_pairs=counts[-1],
        min_length=lengths[-1],
    )

    def row(rng: np.random.Generator) -> tuple[Any, Any]:
        length = _one_of(rng, lengths)
        pairs = _one_of(rng, [count for count in counts if 4 * count <= length])
        # Questions are at every other word behind the pairs.
        slots = (length - 2 * pairs) // 2
        chances = np.arange(1, slots + 1) ** (_CLOSENESS - 1)
        chances /= chances.sum()
        words = value_words[rng.integers(values, size=length)]
        tags = np.full(length, NOT_TAGGED, object)
        own_keys = key_words[rng.choice(keys, pairs, replace=False)]
        words[0 : 2 * pairs : 2] = own_keys
        places = 2 * pairs + 2 * rng.choice(slots, pairs, replace=False, p=chances)
        tags[places] = words[1 : 2 * pairs : 2]
        words[places] = own_keys
        return words, tags

    return _parts("recall", row, seed, train, validation, test)


def load_induction(
    length: int = 256,
    symbols: int = 16,
    seed: int = 0,
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
) -> dict[str, Pairs]:
    """Generates induction heads; the same arguments always give the same data.

    A text consists of random symbols. A mark is somewhere in it and at its end; the tag of the last
    word is the symbol that followed the first mark.

    Args:
        length: Number of words of a text, at least 4.
        symbols: Number of different symbols.
        seed: Seed of the random generator.
        train: Number of texts to train on.
        validation: Number of texts to validate on.
        test: Number of texts to test on.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: A size is not positive, or the length too small.

    Examples:
        >>> parts = load_induction(length=6, symbols=3, train=1, validation=1, test=1)
        >>> parts["train"].sources[0], parts["train"].targets[0]
        ('! s1 s1 s0 s0 !', '_ _ _ _ _ s1')

    References:
        Olsson et al., 2022, https://arxiv.org/abs/2209.11895.
        Gu and Dao, 2023, https://arxiv.org/abs/2312.00752, section 4.1.2 (16 symbols, length 256).
    """
    require_positive(symbols=symbols)
    _require_length(length, 4)
    words_of = _words("s", symbols)

    def row(rng: np.random.Generator) -> tuple[Any, Any]:
        words = words_of[rng.integers(symbols, size=length)]
        tags = np.full(length, NOT_TAGGED, object)
        mark = rng.integers(length - 2)
        tags[-1] = words[mark + 1]
        words[mark] = words[-1] = "!"
        return words, tags

    return _parts("induction", row, seed, train, validation, test)


def load_selective_copying(
    length: int = 256,
    copied: int = 16,
    symbols: int = 16,
    seed: int = 0,
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
) -> dict[str, Pairs]:
    """Generates selective copying; the same arguments always give the same data.

    A text consists of some symbols at random places among dots, and of as many question marks,
    whose tags are the symbols in their order.

    Args:
        length: Number of words before the question marks.
        copied: Number of symbols in a text.
        symbols: Number of different symbols.
        seed: Seed of the random generator.
        train: Number of texts to train on.
        validation: Number of texts to validate on.
        test: Number of texts to test on.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: A size is not positive, or there are more symbols than words.

    Examples:
        >>> parts = load_selective_copying(6, copied=2, symbols=3, train=1, validation=1, test=1)
        >>> parts["train"].sources[0], parts["train"].targets[0]
        ('. s2 s1 . . . ? ?', '_ _ _ _ _ _ s2 s1')

    References:
        Jing et al., 2019, https://arxiv.org/abs/1706.02761, section 5.1 (denoising).
        Gu and Dao, 2023, https://arxiv.org/abs/2312.00752, section 4.1.1 (16 symbols among 4,096).
    """
    require_positive(length=length, copied=copied, symbols=symbols)
    require(
        copied <= length,
        "`copied` must not be greater than `length`.",
        copied=copied,
        length=length,
    )
    words_of = _words("s", symbols)

    def row(rng: np.random.Generator) -> tuple[Any, Any]:
        words = np.full(length + copied, ".", object)
        tags = np.full(length + copied, NOT_TAGGED, object)
        chosen = words_of[rng.integers(symbols, size=copied)]
        words[np.sort(rng.choice(length, copied, replace=False))] = chosen
        words[length:], tags[length:] = "?", chosen
        return words, tags

    return _parts("selective_copying", row, seed, train, validation, test)


def load_duplication(
    length: int = 64,
    symbols: int = 64,
    seed: int = 0,
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
) -> dict[str, Pairs]:
    """Generates duplication; the same arguments always give the same data.

    A text consists of a mark and random symbols, twice. In the second half the tag of a word is the
    next word.

    Args:
        length: Number of words of a text, even and at least 4.
        symbols: Number of different symbols.
        seed: Seed of the random generator.
        train: Number of texts to train on.
        validation: Number of texts to validate on.
        test: Number of texts to test on.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: A size is not positive, or the length too small or odd.

    Examples:
        >>> parts = load_duplication(length=6, symbols=3, train=1, validation=1, test=1)
        >>> parts["train"].sources[0], parts["train"].targets[0]
        ('! s1 s1 ! s1 s1', '_ _ _ s1 s1 _')

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 5.
    """
    require_positive(symbols=symbols)
    _require_length(length, 4)
    require(length % 2 == 0, "`length` must be even.", length=length)
    words_of, half = _words("s", symbols), length // 2

    def row(rng: np.random.Generator) -> tuple[Any, Any]:
        words = words_of[rng.integers(symbols, size=half)]
        words[0] = "!"
        tags = np.full(length, NOT_TAGGED, object)
        tags[half : length - 1] = words[1:]
        return np.concatenate([words, words]), tags

    return _parts("duplication", row, seed, train, validation, test)


def _require_length(length: int, least: int) -> None:
    require_positive(length=length)
    require(length >= least, f"`length` must be at least {least}.", length=length)


def _halved(name: str, greatest: int, least: int | None) -> list[int]:
    """A number, its half, and so on, down to the least one."""
    least = greatest if least is None else least
    require_positive(**{f"min_{name}": least})
    require(
        least <= greatest,
        f"`min_{name}` must not be greater than `{name}`.",
        **{f"min_{name}": least, name: greatest},
    )
    found = [greatest]
    while found[-1] // 2 >= least:
        found.append(found[-1] // 2)
    return found


def _one_of(rng: np.random.Generator, numbers: list[int]) -> int:
    """One of the numbers by chance, which a single one needs none of."""
    return numbers[rng.integers(len(numbers))] if len(numbers) > 1 else numbers[0]


def _words(letter: str, count: int) -> np.ndarray:
    return np.array([f"{letter}{number}" for number in range(count)], object)


def _parts(
    name: str,
    row: Callable[[np.random.Generator], tuple[Any, Any]],
    seed: int,
    train: int,
    validation: int,
    test: int,
) -> dict[str, Pairs]:
    """Parts of a task, each by a random generator of its own."""
    require_positive(train=train, validation=validation, test=test)
    sizes = {"train": train, "validation": validation, "test": test}
    parts = {}
    for number, (part, size) in enumerate(sizes.items()):
        rng = np.random.default_rng([seed, number])
        rows = [tuple(map(" ".join, row(rng))) for _ in range(size)]
        texts, tags = zip(*rows, strict=True)
        parts[part] = Pairs(list(texts), list(tags), f"{name}/{part}", untagged=NOT_TAGGED)
    return parts

"""ListOps: nested lists of digits and operators, with their values."""

import random
import statistics
from collections.abc import Callable

from keras_attn.data.files import Pairs
from keras_attn.data.split import parts_of
from keras_attn.validation import require, require_positive

OPERATORS: dict[str, Callable[[list[int]], int]] = {
    "MIN": min,
    "MAX": max,
    "MED": lambda digits: int(statistics.median(digits)),
    "SM": lambda digits: sum(digits) % 10,
}
_DIGIT = 0.75  # probability that an argument is a digit
_MOST_DEPTH = 10
_MOST_ARGUMENTS = 10


def load_listops(
    min_length: int = 8,
    max_length: int = 64,
    seed: int = 0,
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
) -> dict[str, Pairs[str]]:
    """Generates ListOps; the same arguments always give the same data.

    A source is a list such as `"[MAX 2 [SM 7 8 ] 3 ]"`, its target the value of the list, here
    `"5"`. Tokens are separated by spaces, and a closing bracket is a token. An argument is a digit
    with a probability of 0.75, and always at depth 10; otherwise it is MIN, MAX, MED (the median,
    rounded down) or SM (the sum modulo 10) of 2 to 10 arguments.

    Args:
        min_length: Fewest tokens of a source.
        max_length: Most tokens of a source.
        seed: Seed of the random generator.
        train: Number of pairs to train on.
        validation: Number of pairs to validate on.
        test: Number of pairs to test on.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`, which have no source in common.

    Raises:
        UserError: The lengths are not positive, or too close to each other.

    Examples:
        >>> test = load_listops(max_length=16)["test"]
        >>> test.sources[2], test.targets[2]
        ('[SM 6 4 9 5 [MED 8 4 4 7 4 9 ] ]', '9')

    References:
        Nangia and Bowman, 2018, https://arxiv.org/abs/1804.06028.
        Tay et al., 2021, https://arxiv.org/abs/2011.04006, section 2.2.1 (whose lists have 500 to
        2,000 tokens).
    """
    sizes = {"train": train, "validation": validation, "test": test}
    require_positive(min_length=min_length, max_length=max_length, **sizes)
    require(
        4 <= min_length <= max_length - 8,  # "[MAX 1 2 ]" has four tokens
        "`min_length` must be at least 4, and `max_length` at least `min_length` + 8.",
        min_length=min_length,
        max_length=max_length,
    )
    generator = random.Random(seed)
    rows: dict[str, str] = {}
    while len(rows) < sum(sizes.values()):
        tree = _tree(generator, 1, max_length)
        if tree is not None and len(tree[0]) >= min_length:
            tokens, value = tree
            rows[" ".join(tokens)] = str(value)
    parts = (part for part, size in sizes.items() for _ in range(size))
    return parts_of(
        ((part, *row) for part, row in zip(parts, rows.items(), strict=True)), "listops"
    )


def _tree(generator: random.Random, depth: int, room: int) -> tuple[list[str], int] | None:
    """The tokens of a list or a digit, and its value; None where there are more than `room`."""
    if depth >= _MOST_DEPTH or generator.random() < _DIGIT:
        digit = generator.randrange(10)
        return ([str(digit)], digit) if room else None
    operator = generator.choice(list(OPERATORS))
    tokens: list[str] = [f"[{operator}"]
    values: list[int] = []
    for _ in range(generator.randint(2, _MOST_ARGUMENTS)):
        argument = _tree(generator, depth + 1, max(0, room - len(tokens) - 1))
        if argument is None:
            return None
        tokens += argument[0]
        values.append(argument[1])
    return [*tokens, "]"], OPERATORS[operator](values)

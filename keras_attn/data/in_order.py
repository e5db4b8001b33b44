"""Work on all cores, with results in the order of what is worked on."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Calls a function that leaves Python's lock to others, in threads.

    Args:
        function: The function.
        items: What it is called with; only a few are read ahead.

    Yields:
        The results, in the order of the items.

    Examples:
        >>> list(in_order(lambda number: number**2, [1, 2, 3]))
        [1, 4, 9]
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as threads:
        waiting: deque = deque()
        for item in items:
            waiting.append(threads.submit(function, item))
            if len(waiting) > 2 * cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

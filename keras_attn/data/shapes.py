"""A few padded shapes for many lengths."""

import numpy as np

_MOST_SHAPES = 16


def choose_shapes(
    lengths: np.ndarray, batch_tokens: int, most: int = _MOST_SHAPES
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Divides rows into buckets so that padding all batches alike costs little.

    Starts with one bucket of all rows and repeatedly divides the bucket whose division by a length
    of one side saves the most padded tokens, as long as any division saves some. Rows missing in
    the last batch of a bucket count as padding.

    Args:
        lengths: Lengths of each row's sequences, (rows, sides) integers.
        batch_tokens: Most tokens in a batch on each side.
        most: Most buckets.

    Returns:
        The bucket of each row, (rows,) integers, and each bucket's lengths, one per side.
    """
    cells, cell_of_row, counts = np.unique(lengths, axis=0, return_inverse=True, return_counts=True)
    buckets = [np.arange(len(cells))]
    divisions = [_best_division(cells, counts, buckets[0], batch_tokens)]
    while len(buckets) < most:
        place = int(np.argmax([saved for saved, _ in divisions]))
        saved, division = divisions[place]
        if saved <= 0:
            break
        parts = (buckets[place][division], buckets[place][~division])
        buckets[place : place + 1] = parts
        divisions[place : place + 1] = [
            _best_division(cells, counts, part, batch_tokens) for part in parts
        ]
    bucket_of_cell = np.empty(len(cells), np.int64)
    for bucket, members in enumerate(buckets):
        bucket_of_cell[members] = bucket
    longest = [tuple(int(side) for side in cells[members].max(axis=0)) for members in buckets]
    return bucket_of_cell[cell_of_row.reshape(-1)], longest


def _best_division(
    cells: np.ndarray, counts: np.ndarray, members: np.ndarray, batch_tokens: int
) -> tuple[int, np.ndarray]:
    """The padded tokens saved by the best division of a bucket, and which members go first."""
    whole = _padded_tokens(cells[members].max(axis=0), counts[members].sum(), batch_tokens)
    best, division = 0, np.zeros(len(members), bool)
    for side in range(cells.shape[1]):
        order = np.argsort(cells[members, side], kind="stable")
        lengths, rows = cells[members][order], counts[members][order]
        # Largest lengths and rows of the first `k` members in order, and of the others.
        first = _padded_tokens(
            np.maximum.accumulate(lengths)[:-1], np.cumsum(rows)[:-1], batch_tokens
        )
        others = _padded_tokens(
            np.maximum.accumulate(lengths[::-1])[:-1], np.cumsum(rows[::-1])[:-1], batch_tokens
        )[::-1]
        # Members of an equal length stay together.
        apart = np.diff(lengths[:, side]) > 0
        saved = np.where(apart, whole - first - others, 0)
        if saved.size and saved.max() > best:
            place = int(saved.argmax())
            best, division = int(saved[place]), cells[members, side] <= lengths[place, side]
    return best, division


def _padded_tokens(lengths: np.ndarray, rows: np.ndarray, batch_tokens: int) -> np.ndarray:
    """Tokens of all sides in all batches of buckets with these largest lengths."""
    size = batch_tokens // lengths.max(axis=-1)
    return -(-rows // size) * size * lengths.sum(axis=-1)

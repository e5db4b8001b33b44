"""Attention weights of one call of a layer, as NumPy arrays."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class AttentionMap:
    """Attention weights of one call of a layer.

    Attributes:
        name: The layer's path in its model, with the number of the call if there are several.
        mechanism: Name of the layer's class.
        weights: float32 (batch, heads, target, source); a context is the weighted sum of values.
        query_real: bool (batch, target), `False` at queries that are padding.
        source_real: bool (batch, source), `False` at positions that no query may attend to.
        crosses: Whether queries and values are different sequences.
        is_causal: Whether queries may not attend to later positions.
        is_softmax: Whether the weights are a softmax of scores; those of linear attention are
            products of features, divided by their sum.
        rows_before: Number of rows before those of the query's sequence: global positions.
        columns_before: Number of columns before those of the value's sequence: global positions, a
            memory, or an initial state.
        pattern: The pairs of positions that may attend to each other: `window`, the distance of the
            nearest key that is not visible; `globals`, the number of positions at the beginning
            that attend to all and that all attend to; `buckets`, int (batch, heads, rounds,
            length); `segment` and `memory`, lengths of a segment and of the memory before it;
            `compressed`, the number of slots of a compressed memory, and `slots`, for each of its
            columns the first position and the position after the last.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> (found,) = attention_maps(model, {"token_ids": np.array([[5, 7, 3, 0]])})
        >>> found.mechanism, found.weights.shape
        ('MultiHeadAttention', (1, 2, 4, 4))
        >>> found.example(0).reach()[0].astype(int)  # without padding
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
    """

    name: str
    mechanism: str
    weights: np.ndarray
    query_real: np.ndarray
    source_real: np.ndarray
    crosses: bool = False
    is_causal: bool = False
    is_softmax: bool = True
    rows_before: int = 0
    columns_before: int = 0
    pattern: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def example(self, row: int = 0) -> "AttentionMap":
        """Returns one example of the batch, without padding at its end.

        Masked positions before the last real one are kept, with weights of 0. The same applies to
        separate global positions.

        Args:
            row: Index of the example.

        Returns:
            The map, with a batch of 1.
        """
        targets = _end(self.query_real[row])
        sources = _end(self.source_real[row])
        if self.is_self and self.rows_before == self.columns_before:
            targets = sources = min(targets, sources)
        pattern = dict(self.pattern)
        if "buckets" in pattern:
            pattern["buckets"] = pattern["buckets"][row : row + 1, ..., :sources]
        cut = dataclasses.replace(
            self,
            weights=self.weights[row : row + 1, :, :targets, :sources],
            query_real=self.query_real[row : row + 1, :targets],
            source_real=self.source_real[row : row + 1, :sources],
            pattern=pattern,
        )
        return cut._without_empty_globals() if "globals" in pattern and self.rows_before else cut

    def _without_empty_globals(self) -> "AttentionMap":
        """The example without padding of its global positions."""
        count = _end(self.source_real[0, : self.columns_before])
        rows, columns = (
            np.r_[:count, before : real.shape[1]]
            for before, real in (
                (self.rows_before, self.query_real),
                (self.columns_before, self.source_real),
            )
        )
        return dataclasses.replace(
            self,
            weights=self.weights[:, :, rows[:, None], columns],
            query_real=self.query_real[:, rows],
            source_real=self.source_real[:, columns],
            rows_before=count,
            columns_before=count,
            pattern={**self.pattern, "globals": count},
        )

    @property
    def is_self(self) -> bool:
        """Whether a sequence attends only to itself."""
        return not self.crosses and self.weights.shape[2] == self.weights.shape[3]

    def reach(self) -> np.ndarray:
        """Returns the pairs that the mechanism's order and pattern allow, without masks.

        Returns:
            bool (heads or 1, target, source).
        """
        targets, sources = self.weights.shape[2:]
        at_query = np.arange(targets)[:, None] - self.rows_before
        at_key = np.arange(sources)[None, :] - self.columns_before
        reach = np.ones((1, targets, sources), bool)
        if self.crosses:
            return reach
        if self.is_causal:
            reach &= at_key <= at_query
        if "window" in self.pattern:
            near = np.abs(at_key - at_query) < self.pattern["window"]
            first = self.pattern.get("globals", 0)
            is_global = (np.arange(targets) < first)[:, None] | (np.arange(sources) < first)[None]
            reach &= near | is_global
        if "segment" in self.pattern:
            reach &= self._reach_of_segments(at_key)
        if "buckets" in self.pattern:
            buckets = self.pattern["buckets"][0]
            alike = (buckets[..., :, None] == buckets[..., None, :]).any(axis=1)
            reach = reach & (alike | (at_key == at_query))
        return reach

    def _reach_of_segments(self, at_key: np.ndarray) -> np.ndarray:
        """Visible columns for the segment of each row, bool (target, source)."""
        size, memory, seen = (self.pattern[name] for name in ("segment", "memory", "compressed"))
        ends = np.array([end for _, end in self.pattern["slots"]], int)
        reach = np.zeros((self.weights.shape[2], at_key.shape[1]), bool)
        for row in range(len(reach)):
            start = row // size * size
            reach[row] = (at_key[0] >= start - memory) & (at_key[0] < start + size)
            fallen = int((ends <= start - memory).sum())  # out of the memory, into slots
            reach[row, : self.columns_before] = False
            # Slots before the sequence are empty.
            reach[row, max(fallen - seen, 0) : fallen] = ends[max(fallen - seen, 0) : fallen] > 0
        return reach


def describe_pattern(found: AttentionMap) -> str:
    """Describes the visible positions of a mechanism in a few words; "" for all positions.

    Args:
        found: The map.
    """
    pattern, words = found.pattern, []
    if "window" in pattern:
        after = "" if found.is_causal else " and after"
        words.append(f"window of {pattern['window'] - 1} positions before" + after)
    if "globals" in pattern:
        words.append(f"{pattern['globals']} global")
    if "buckets" in pattern:
        words.append(f"buckets of {pattern['buckets'].shape[2]} rounds of hashing")
    if "segment" in pattern:
        words.append(f"segments of {pattern['segment']} positions and a memory")
    if "slots" in pattern and found.columns_before:
        words.append(f"{found.columns_before} compressed slots")
    if "reads" in pattern:
        words.append(f"its own earlier states, read {pattern['reads']}")
    if not found.is_softmax:
        words.append("no softmax: normalized products of features")
    return "; ".join(words)


def _end(real: np.ndarray) -> int:
    return int(np.max(np.flatnonzero(real), initial=-1)) + 1

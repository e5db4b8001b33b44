"""What goes into a call of attention: that shapes fit each other, as far as they are known."""

from typing import Any

from keras_attn.validation import require


def require_attention_inputs(
    query: Any,
    value: Any,
    key: Any = None,
    query_mask: Any = None,
    value_mask: Any = None,
    key_mask: Any = None,
    attention_mask: Any = None,
    same_length: bool = False,
) -> None:
    """Raises unless queries, keys, values and masks fit together.

    Args:
        query: Tensor (batch, target, features).
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features), or `None`.
        query_mask: Boolean (batch, target), or `None`.
        value_mask: Boolean (batch, source), or `None`.
        key_mask: Boolean (batch, source), or `None`.
        attention_mask: Boolean (batch, ..., target, source), or `None`; an axis of 1 is for all.
        same_length: Whether the mechanism attends within one sequence, target and source being as
            long as each other.

    Raises:
        UserError: An input has another rank, or a length differs.
    """
    inputs = {"query": query, "value": value} | ({} if key is None else {"key": key})
    for name, x in inputs.items():
        require(
            len(x.shape) == 3,
            f"`{name}` must be (batch, length, features).",
            **{f"{name}_shape": tuple(x.shape)},
        )
    target, source = query.shape[1], value.shape[1]
    if same_length:
        _require_length("value", value, 1, target, "query")
    if key is not None:
        _require_length("key", key, 1, source, "value")
    for name, mask, length, of in (
        ("query_mask", query_mask, target, "query"),
        ("value_mask", value_mask, source, "value"),
        ("key_mask", key_mask, source, "value"),
    ):
        if mask is not None and len(mask.shape) == 2:
            _require_length(name, mask, 1, length, of, for_all=True)
    if attention_mask is not None and len(attention_mask.shape) >= 3:
        _require_length("attention_mask", attention_mask, -2, target, "query", for_all=True)
        _require_length("attention_mask", attention_mask, -1, source, "value", for_all=True)


def _require_length(
    name: str, x: Any, axis: int, length: int | None, of: str, for_all: bool = False
) -> None:
    """Raises where both lengths are known and differ; of a mask 1 stands `for_all`."""
    fits = x.shape[axis] in {None, length, 1 if for_all else length} or length is None
    require(
        fits,
        f"`{name}` must have the length of `{of}` in axis {axis}.",
        **{f"{name}_shape": tuple(x.shape), f"{of}_length": length},
    )

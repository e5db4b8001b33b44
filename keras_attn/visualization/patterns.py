"""Descriptions of attention patterns in words."""

from keras_attn.visualization.attention_map import AttentionMap


def describe_pattern(found: AttentionMap) -> str:
    """Describes the visible positions of a mechanism in a few words; "" for all positions.

    Args:
        found: The map.
    """
    pattern, words = found.pattern, []
    if "window" in pattern:
        words.append(f"window of {pattern['window'] - 1} positions before" + _after(found))
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


def _after(found: AttentionMap) -> str:
    return "" if found.is_causal else " and after"

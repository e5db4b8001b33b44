"""Memory of training by the number of blocks: plain, recomputed and reversible ones.

Behind `keras-attn benchmark depth`. Runs on the backend that KERAS_BACKEND names, as `--backend`
sets it; on JAX without TensorFlow.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from keras_attn.benchmarks.growth import markdown
from keras_attn.benchmarks.layer_call import measure_in_a_process
from keras_attn.validation import require, require_positive

WIDTH, HEADS, KEY_DIM, INNER, WINDOW, DROPOUT = 256, 4, 64, 1024, 64, 0.1
SHARE = 16  # of the sequence is measured too
KINDS = ("usual", "recomputed", "reversible")


def make_layer(settings: dict[str, Any]) -> Any:
    """As many blocks of `settings["kind"]` as `settings["blocks"]` says."""
    import keras

    from keras_attn import layers

    reversible = settings["kind"] == "reversible"
    kind = layers.ReversibleBlock if reversible else layers.TransformerEncoderBlock
    options = {} if reversible else {"recompute": settings["kind"] == "recomputed"}
    blocks = [
        kind(
            layers.LocalAttention(HEADS, KEY_DIM, WINDOW),
            layers.FeedForward(INNER),
            dropout=DROPOUT,
            **options,
        )
        for _ in range(settings["blocks"])
    ]
    stack = layers.ReversibleStack(blocks) if reversible else keras.Sequential(blocks)
    stack.build((1, settings["length"], settings["width"]))
    return stack


def call_layer(layer: Any, x: Any, settings: dict[str, Any]) -> Any:
    """The stack's output in training; of a reversible one the sum of its two streams."""
    if settings["kind"] == "reversible":
        return sum(layer(x, x, training=True))
    return layer(x, training=True)


def measure_depth(
    blocks: Sequence[int] = (1, 4, 12), length: int = 4_096, repeats: int = 1
) -> Iterator[dict[str, Any]]:
    """Measures forward and backward passes through stacks of blocks, one fresh process a figure.

    Each stack is measured at a sixteenth of the length too: the difference is what the sequence
    takes, without the program and the weights' gradients, which grow with the blocks in any case.

    Args:
        blocks: Numbers of blocks.
        length: Number of positions of the one sequence, at least 16.
        repeats: Calls that are timed in a process, after one that is not.

    Yields:
        A dict with the settings and what `layer_call.measure` returns, or `error` where the process
        failed.

    Raises:
        UserError: A number is not positive, or the length below 16.
    """
    require_positive(repeats=repeats)
    require(length >= SHARE, f"`length` must be at least {SHARE}.", length=length)
    for number in blocks:
        require_positive(blocks=number)
    for number in blocks:
        for kind in KINDS:
            for positions in (length // SHARE, length):
                settings = {
                    "workload": "depth",
                    "kind": kind,
                    "blocks": number,
                    "length": positions,
                    "width": WIDTH,
                    "backward": True,
                    "jit": False,
                    "precision": "float32",
                    "repeats": repeats,
                }
                yield settings | measure_in_a_process(settings)


def depth_table(figures: Sequence[dict[str, Any]]) -> str:
    """Seconds of the whole sequence and what it takes of memory, by kind and number of blocks.

    Args:
        figures: What `measure_depth` gave.

    Returns:
        A table in Markdown.
    """
    numbers = list(dict.fromkeys(figure["blocks"] for figure in figures))
    rows = [["blocks", *map(str, numbers)]]
    for kind in KINDS:
        own = [figure for figure in figures if figure["kind"] == kind]
        rows.append([kind, *(_cell([f for f in own if f["blocks"] == n]) for n in numbers)])
    return markdown(rows)


def _cell(figures: Sequence[dict[str, Any]]) -> str:
    for figure in figures:
        if "error" in figure:
            return figure["error"]
    part, whole = sorted(figures, key=lambda figure: figure["length"])
    megabytes = (whole["peak_bytes"] - part["peak_bytes"]) / 1e6
    return f"{whole['seconds']:.3g} s, {megabytes:,.0f} MB"

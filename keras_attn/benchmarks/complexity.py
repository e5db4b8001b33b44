"""The complexity table of "Attention Is All You Need" (Table 1), measured.

Implements `keras-attn benchmark complexity`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_attn.benchmarks.layer_call import measure_in_a_process
from keras_attn.validation import require_positive

WINDOW = 64  # r: positions that restricted self-attention reaches, before and after
KERNEL = 3  # k of the convolution


class LayerType(NamedTuple):
    """A row of the table.

    Attributes:
        make: Makes the layer for a width.
        in_length: Exponent of the length n in the theoretical complexity.
        in_width: Exponent of the width d.
        complexity: The complexity as the paper writes it.
    """

    make: Callable
    in_length: int
    in_width: int
    complexity: str


def _self_attention(width):
    from keras_attn.layers import SimpleSelfAttention

    return SimpleSelfAttention()


def _restricted(width):
    import keras

    from keras_attn.ops.local_attention import local_attention

    class RestrictedSelfAttention(keras.layers.Layer):
        """Self-attention inside a window, without parameters."""

        def call(self, x):
            heads = x[:, None]
            return local_attention(heads, heads, heads, WINDOW + 1)[:, 0]

    return RestrictedSelfAttention()


def _recurrent(width):
    import keras

    return keras.layers.LSTM(width, return_sequences=True)


def _convolution(width):
    import keras

    return keras.layers.Conv1D(width, KERNEL, padding="same")


LAYER_TYPES = {
    "self-attention": LayerType(_self_attention, 2, 1, "n² d"),
    "restricted self-attention": LayerType(_restricted, 1, 1, "r n d"),
    "recurrent (LSTM)": LayerType(_recurrent, 1, 2, "n d²"),
    "convolutional": LayerType(_convolution, 1, 2, "k n d²"),
}


def make_layer(settings: dict[str, Any]) -> Any:
    """The layer that `settings["layer"]` names."""
    layer = LAYER_TYPES[settings["layer"]].make(settings["width"])
    layer.build((1, settings["length"], settings["width"]))
    return layer


def call_layer(layer: Any, x: Any, settings: dict[str, Any]) -> Any:
    """The layer's output."""
    return layer(x, x) if settings["layer"] == "self-attention" else layer(x)


def measure_complexity(
    lengths: Sequence[int],
    widths: Sequence[int],
    backward: bool = True,
    jit: bool = False,
    repeats: int = 3,
) -> Iterator[dict[str, Any]]:
    """Measures layers by length, at the first width, and by width, at the first length.

    Args:
        lengths: Numbers of positions.
        widths: Numbers of features.
        backward: Whether to also compute the gradients of input and weights.
        jit: Whether XLA compiles, as it always does on JAX.
        repeats: Timed calls in a process, after a warm-up call.

    Yields:
        A dict with the settings, the theoretical `complexity` and the results of
        `layer_call.measure`, or `error` if the process failed.

    Raises:
        UserError: A number is not positive.
    """
    for name, numbers in (("lengths", lengths), ("widths", widths)):
        for number in numbers:
            require_positive(**{name: number})
    require_positive(repeats=repeats)
    sizes = [(length, widths[0]) for length in lengths]
    sizes += [(lengths[0], width) for width in widths[1:]]
    for length, width in sizes:
        for name, layer_type in LAYER_TYPES.items():
            settings = {
                "workload": "complexity",
                "layer": name,
                "length": length,
                "width": width,
                "backward": backward,
                "jit": jit,
                "precision": "float32",
                "repeats": repeats,
                "complexity": layer_type.complexity,
            }
            yield settings | measure_in_a_process(settings)

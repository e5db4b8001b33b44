"""Exports layers, blocks and models to every format of Keras and runs them there.

Prints a table: python -m tests.export.interop [NAME …]
"""

import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_attn import layers
from tests.layers.mechanisms import MECHANISMS
from tests.models.every_family import EVERY

LENGTH, FEATURES = 5, 6
TOLERANCE = 2e-5
MASKED = {
    "x": np.random.default_rng(1).normal(size=(2, LENGTH, FEATURES)).astype("float32"),
    "mask": np.arange(LENGTH) < np.array([[LENGTH], [3]]),
}


def _of_layer(make: Callable) -> Callable:
    def call(x, mask):
        outputs = make()(x, x, query_mask=mask, value_mask=mask)
        return keras.tree.flatten(outputs)[0]

    return call


def _of_keras(make: Callable) -> Callable:
    def call(x, mask):
        layer = make()
        if isinstance(layer, keras.layers.MultiHeadAttention):
            return layer(x, x, query_mask=mask, value_mask=mask)
        return layer([x, x], mask=[mask, mask])

    return call


def _encoder_block(x, mask):
    block = layers.TransformerEncoderBlock(
        layers.MultiHeadAttention(2, 3), layers.FeedForward(7, activation="relu")
    )
    return block(x, padding_mask=mask)


def _decoder_block(x, mask):
    attention = layers.MultiHeadAttention(2, 3)
    block = layers.TransformerDecoderBlock(
        attention, layers.FeedForward(7, activation="relu"), attention
    )
    return block(x, x, padding_mask=mask, source_padding_mask=mask)


KERAS = {
    "Keras: MultiHeadAttention": _of_keras(lambda: keras.layers.MultiHeadAttention(2, 3)),
    "Keras: Attention": _of_keras(keras.layers.Attention),
    "Keras: AdditiveAttention": _of_keras(keras.layers.AdditiveAttention),
}
LAYERS = {name: _of_layer(mechanism.make) for name, mechanism in MECHANISMS.items()}
BLOCKS = {"encoder block": _encoder_block, "decoder block": _decoder_block}
# One of each family; the others differ by what is pooled or compressed.
MODELS = {
    name: case
    for name, case in EVERY.items()
    if name not in ("Bert", "CompressiveTransformer, convolution")
    and name.partition(", ")[2] not in ("max", "first", "pooler")
}
NAMES = [*KERAS, *LAYERS, *BLOCKS, *MODELS]

_LOOP = "a loop over parts whose number is unknown keeps a list of tensors of unknown shapes"
_RECURRENT = "Keras' RNN over an unknown length keeps a list of tensors, as with LSTM alone"
_SYSTEM = "a triangular system of equations, for which there is no operation"
_SORT = "a sort, and random rotations: Bitcast, and a sort that is stable"
_GELU = "tf2onnx writes the Erfc of an exact GELU, which ONNX lacks; Keras' own fails as well"

# What a format cannot run, and why: (name, format), with a third `True` where only a fixed length
# and `False` where only an unknown one fails.
CANNOT: dict[tuple, str] = {
    **{
        (name, form, False): _LOOP
        for name in (
            "local",
            "local, rotary",
            "local, relative",
            "Longformer",
            "Longformer, dilated",
            "gated linear",
            "global and local",
            "additive",
            "Luong, concat",
            "ETC",
        )
        for form in ("onnx", "litert")
    },
    **{("multi-head, chunked", form): _LOOP for form in ("onnx", "litert")},
    ("gated linear", "openvino", False): _LOOP,
    **{
        (name, form): _SYSTEM
        for name in ("delta rule", "delta rule, gated", "convolved, delta rule")
        for form in ("onnx", "openvino", "litert")
    },
    **{("LSH", form): _SORT for form in ("onnx", "openvino", "litert")},
    **{("Reformer", form): _SORT for form in ("onnx", "openvino", "litert")},
    **{
        (name, form): _RECURRENT
        for name in ("additive LSTM", "Luong", "GNMT")
        for form in ("openvino", "litert")
    },
    **{
        (name, "onnx"): _GELU
        for name in (
            "Bert, disentangled",
            "Bert, one segment",
            "Bert, pre-norm",
            "Bert, shared blocks",
            "PooledEncoder",
            "MaskedLanguageModel",
            "TokenClassifier",
            "SequenceClassifier, mean",
            "PatchEncoder",
            "Forecaster",
        )
    },
}


def reason_why_not(name: str, form: str, length_known: bool) -> str | None:
    """Why a format cannot run a case, or None where it can."""
    return CANNOT.get((name, form, length_known), CANNOT.get((name, form)))


def model_of(name: str, length_known: bool) -> tuple[keras.Model, dict[str, np.ndarray]]:
    """A functional model of a case, and its inputs by name, in their order."""
    call, arrays = MODELS.get(name, (None, MASKED))
    inputs = {
        key: keras.Input(
            array.shape[1:] if length_known or key == "images" else _unknown(array.shape[1:]),
            dtype=str(array.dtype),
            name=key,
        )
        for key, array in arrays.items()
    }
    if call is None:
        outputs = (KERAS | LAYERS | BLOCKS)[name](**inputs)
    else:
        outputs = keras.tree.flatten(call()(inputs))[0]
    return keras.Model(list(inputs.values()), outputs), arrays


def _unknown(shape: tuple) -> tuple:
    return (None, *shape[1:])


def difference(name: str, form: str, length_known: bool, folder: pathlib.Path) -> float:
    """The largest difference between what the format's runtime and the model compute."""
    keras.utils.set_random_seed(1)
    model, inputs = model_of(name, length_known)
    for weight in model.weights:
        if not weight.trainable:
            continue
        noise = np.random.default_rng(2).normal(size=weight.shape) * 0.1
        weight.assign(keras.ops.convert_to_numpy(weight) + noise)
    expected = keras.ops.convert_to_numpy(model(list(inputs.values()), training=False))
    path = str(folder / f"model{SUFFIXES[form]}")
    model.export(path, format=form, verbose=False)
    found = RUNTIMES[form](path, inputs)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return float(np.abs(found - expected).max())


def _run_saved_model(path: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    return loaded.serve(list(inputs.values())).numpy()


def _run_onnx(path: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs.values(), strict=True)))[0]


def _run_openvino(path: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    import openvino

    # Else it computes in bfloat16 where the processor can.
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(path, "CPU", settings)(list(inputs.values()))[0]


def _run_litert(path: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(model_path=path).get_signature_runner()
    return next(iter(run(**inputs).values()))


RUNTIMES: dict[str, Callable[[str, dict[str, np.ndarray]], Any]] = {
    "tf_saved_model": _run_saved_model,
    "onnx": _run_onnx,
    "openvino": _run_openvino,
    "litert": _run_litert,
}
SUFFIXES = {"tf_saved_model": "", "onnx": ".onnx", "openvino": ".xml", "litert": ".tflite"}


def main(names: list[str]) -> None:
    """Prints the table of largest differences."""
    columns = [(form, known) for form in RUNTIMES for known in (True, False)]
    titles = [f"{form}, {LENGTH if known else 'None'}" for form, known in columns]
    print(f"| | {' | '.join(titles)} |\n|---|{'---|' * len(columns)}", flush=True)
    for name in names or NAMES:
        cells = []
        for form, known in columns:
            if known and name in MODELS:
                cells.append("")
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    cells.append(f"{difference(name, form, known, pathlib.Path(folder)):.0e}")
                except Exception as error:
                    line = " ".join(str(error).split())
                    print(f"{name}, {form}, {known}: {line[:300]}", file=sys.stderr, flush=True)
                    cells.append("no")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Time of a training step by kinds of TensorFlow ops, in one thread."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_attn.benchmarks.matrix_products import REPEATS, fastest, matrix_operations, matrix_peak
from keras_attn.benchmarks.timing import seconds_of_runs
from keras_attn.models import Transformer

PRODUCTS = "matrix products"
OTHERS = "element-wise and others"
BETWEEN = "between ops"
# Kinds by parts of an op's type and name; the first match is used.
_TYPES = {
    "products of attention": ("BatchMatMul",),
    PRODUCTS: ("MatMul", "Einsum"),
    "optimiser": ("ResourceApply",),
}
_NAMES = {"dropout": ("dropout", "random"), "layer norm": ("norm",), "softmax": ("softmax",)}
_OTHER_TYPES = {
    "casts": ("Cast",),
    "copies and transposes": (
        *("Transpose", "Concat", "Split", "Slice", "Pack", "Pad", "Tile", "Reshape", "Gather"),
        *("ReadVariable", "Identity", "Fill"),
    ),
    "sums": ("Sum", "Mean", "BiasAddGrad", "AddN"),
}


def use_one_thread() -> None:
    """Makes TensorFlow use one thread, so that ops do not overlap; call it before any op."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def profile(run: Callable, batch: tuple[dict, tf.Tensor], model: Transformer) -> dict[str, Any]:
    """Profiles a training step, and compares it with the peak speed of matrix products.

    Args:
        run: The step, already traced by an earlier call.
        batch: Its batch.
        model: The trained model.

    Returns:
        `time` (fractions by kind), `gflops` (operations of matrix products per second, in 10⁹, over
        the whole step), `peak_gflops` (those of one large product) and `of_peak`, their ratio.
    """
    inputs, labels = batch
    rows, source = inputs["source_ids"].shape
    operations = matrix_operations(model, rows, source, labels.shape[1])
    reached = operations / fastest(lambda: run([batch]).numpy())
    peak = matrix_peak(model.compute_dtype)
    return {
        "time": shares_of_time(lambda: run([batch]).numpy()),
        "gflops": round(reached / 1e9, 1),
        "peak_gflops": round(peak / 1e9, 1),
        "of_peak": round(reached / peak, 3),
    }


def shares_of_time(step: Callable[[], None]) -> dict[str, float]:
    """Runs a step a few times under TensorFlow's profiler, and computes the time by kind.

    Args:
        step: Runs a step and waits for it; already traced by an earlier call.

    Returns:
        Fractions of the time by kind, in descending order, with a sum of 1.
    """
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        total = sum(seconds_of_runs(step, REPEATS))
        tf.profiler.experimental.stop()
        spent = Counter()
        for name, kind, seconds in _ops(Path(folder)):
            spent[kind_of(name, kind)] += seconds
    spent[BETWEEN] = total - spent.total()
    return {kind: round(seconds / total, 3) for kind, seconds in spent.most_common()}


def kind_of(name: str, type_: str) -> str:
    """The kind of an op of a training step.

    Args:
        name: Its name with the scopes, such as `"transformer/dropout/Mul"`.
        type_: Its type, such as `"Mul"`.
    """
    lowered = name.lower()
    looked_at = ((_TYPES, type_), (_NAMES, lowered), (_OTHER_TYPES, type_))
    for kinds, text in looked_at:
        for kind, parts in kinds.items():
            if any(part in text for part in parts):
                return kind
    return OTHERS


def own_seconds(events: list[tuple[str, int, int]]) -> Iterator[tuple[str, float]]:
    """Computes the time of events of a thread, without events inside them.

    Args:
        events: Name, beginning and duration of each, in picoseconds.

    Yields:
        The name of each and its own seconds.
    """
    around: list[list] = []  # name, end and own picoseconds of unfinished events
    for name, start, duration in sorted(events, key=lambda event: (event[1], -event[2])):
        while around and around[-1][1] <= start:
            ended, _, own = around.pop()
            yield ended, own / 1e12
        if around:
            around[-1][2] -= duration
        around.append([name, start + duration, duration])
    for name, _, own in around:
        yield name, own / 1e12


def _ops(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Name, type and own seconds of every op in the profile."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    (path,) = folder.rglob("*.xplane.pb")
    for plane in XSpace.FromString(path.read_bytes()).planes:
        if "CPU" not in plane.name:
            continue
        names = {number: data.name for number, data in plane.event_metadata.items()}
        for line in plane.lines:
            events = [
                (names[event.metadata_id], event.offset_ps, event.duration_ps)
                for event in line.events
                if ":" in names[event.metadata_id].replace("::", "")
            ]
            for event, seconds in own_seconds(events):
                name, _, type_ = event.rpartition(":")
                # The call of a whole graph, in a thread that waits for its ops.
                if not type_.lstrip().startswith("__inference"):
                    yield name, type_, seconds

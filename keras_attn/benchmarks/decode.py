"""Seconds of cached decoding by an exported model, with random weights and a forced length."""

import tempfile
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from keras_attn.benchmarks.timing import median_seconds
from keras_attn.benchmarks.workloads import DECODE_BASE, DECODE_WORKLOADS, model_sizes
from keras_attn.export import export_saved_model
from keras_attn.models import Transformer
from keras_attn.tasks import DecodingSettings, Seq2SeqTask, ServingFunction
from keras_attn.tokenizers import SymbolTokenizer
from keras_attn.tokenizers.base import SPECIAL_TOKENS
from keras_attn.validation import require_positive


def benchmark_decoding(
    batches: list[int] | None = None,
    beams: list[int] | None = None,
    jit: bool = False,
    runs: int = 3,
    compute: str = "float32",
) -> Iterator[dict]:
    """Exports a model and measures the time of its `token_ids` signature, as in a server.

    Args:
        batches: Batch sizes; the workload's by default.
        beams: Beam widths; the workload's by default, 1 being greedy search.
        jit: Whether the model is exported with XLA.
        runs: Timed runs after a warm-up run; the median is reported.
        compute: Precision of the computation, see `export_saved_model`.

    Yields:
        For each batch size and beam width: seconds, and generated tokens of the best hypotheses per
        second.
    """
    workload = DECODE_WORKLOADS[DECODE_BASE]
    batches, beams = batches or workload["batches"], beams or workload["beams"]
    for name, numbers in (("batches", batches), ("beams", beams)):
        for number in numbers:
            require_positive(**{name: number})
    require_positive(runs=runs)
    keras.utils.set_random_seed(0)
    model = Transformer(workload["vocabulary"], **model_sizes(workload), dropout=0.0)
    for width in beams:
        with tempfile.TemporaryDirectory() as folder:
            task = _task(model, workload, width)
            path = export_saved_model(
                task, folder, jit=jit, n_best=1, compute=compute, tolerance=1e9
            )
            run = tf.saved_model.load(str(path)).signatures["serving_default"]
            for batch in batches:
                seconds = _time(run, batch, workload, runs)
                yield {
                    "peer": "keras_attn",
                    "workload": DECODE_BASE,
                    "batch": batch,
                    "beam": width,
                    "jit": jit,
                    "compute": compute,
                    "seconds": round(seconds, 4),
                    "tokens_per_second": round(batch * workload["new_tokens"] / seconds),
                }


class _TokenIdsOnly(Seq2SeqTask):
    """A task whose export only has the measured signature."""

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        return {"serving_default": super().serving_functions(n_best, jit)["token_ids"]}


def _task(model, workload, beams) -> Seq2SeqTask:
    words = [f"w{number}" for number in range(workload["vocabulary"] - len(SPECIAL_TOKENS))]
    tokenizer = SymbolTokenizer(words)
    length = workload["new_tokens"]
    decoding = DecodingSettings(beams=beams, max_length=length, min_length=length)
    return _TokenIdsOnly(model, tokenizer, tokenizer, decoding)


def _time(run, batch, workload, runs) -> float:
    rng = np.random.default_rng(0)
    ids = rng.integers(len(SPECIAL_TOKENS), workload["vocabulary"], (batch, workload["source"]))
    ids = tf.constant(ids, tf.int32)
    return median_seconds(lambda: run(source_ids=ids)["token_ids"].numpy(), runs)

"""Export a trained model as a SavedModel for TensorFlow Serving.

The SavedModel maps strings to strings. It is written to DIR/<version>/, where the version is the
next free number. Its signatures:
  serving_default   text -> the best text, its score and log-probability
  n_best            text -> several texts with scores
  score             text and target -> the target's log-probability
  token_ids, n_best_token_ids, score_token_ids   the same for ids
  attention         text (and target, for models that generate text) -> tokens and attention weights
  sample            language models: text, seed, temperature, top_k and top_p -> a random text;
                    sample_default takes only text and seed, sample_token_ids takes ids
Classifiers: serving_default and n_best return labels and probabilities, token_ids takes ids.
Masked language models: serving_default and n_best return filled texts and probabilities, token_ids
and n_best_token_ids filled ids and probabilities.
Taggers: serving_default returns the tags as one text, and each word's tag and probability, padded
to the longest text; token_ids takes ids.
Embedding models: serving_default and token_ids return vectors.
Image classifiers: image_bytes (contents of PNG files) instead of text, pixels instead of token_ids.
assets.extra/README.md of the version contains example requests and answers for all signatures.

--quantize float16 or bfloat16 stores matrices in half of the disk space, int8 in a quarter. Models
still compute in float32: each request converts the weights, so a server needs as much memory and
is slightly slower. The change of the outputs is measured on --examples (use typical ones) and
printed. The export fails if it exceeds --tolerance: by default one different output in a thousand,
or a number that differs by 0.001 (relative if above 1). --quantize-only feed_forward quantizes only
weights with this text in their path, often two thirds of all.

--compute int8 computes products with weights in 8-bit integers, bfloat16 the whole model in that
dtype; the change is measured and limited in the same way, by default to 0.1 or 0.05. Measure the
speed of both on the processor that serves: bfloat16 is often slower than float32.

examples:
  keras-attn export runs/g2p exported/g2p
  keras-attn export runs/g2p exported/g2p --quantize float16 --examples words.txt
  keras-attn export runs/g2p exported/g2p --quantize int8 --tolerance 0.05 --examples words.txt
  keras-attn export runs/g2p exported/g2p --compute int8 --examples words.txt
  keras-attn export runs/g2p exported/g2p --serving-config serving
  keras-attn verify exported/g2p
  tensorflow_model_server --model_name=g2p --model_base_path=$PWD/exported/g2p --rest_api_port=8501
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_attn.cli import decoding_options
from keras_attn.cli.options import add_old_option, add_value
from keras_attn.cli.terminal import quiet_start
from keras_attn.export_manifest import read_manifest
from keras_attn.export_precision import check_precision
from keras_attn.validation import require


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `export`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run or a task folder")
    add("folder", metavar="DIR", help="folder of the model's versions")
    decoding_options.add_arguments(parser)
    n_best = "hypotheses of n_best (default: 4, or the number of beams)"
    add("--n-best", type=int, metavar="N", help=n_best)
    add("--model-version", type=int, metavar="N", help="version (default: the next free number)")
    add(
        "--examples",
        metavar="FILE",
        help="file of typical texts, or names of PNG files, for warm-up, `verify` and the "
        "page of `serve` (default: held-out texts or images of the run, and made-up ones)",
    )
    stored = "dtype of stored weights: float32, float16, bfloat16 or int8"
    add_value(parser, "--quantize", "float32", stored, "DTYPE")
    compute = (
        "precision of the computation: float32, bfloat16 (with matrices stored in it), or int8, "
        "products of 8-bit integers, for x86 processors with VNNI"
    )
    add_value(parser, "--compute", "float32", compute, "DTYPE")
    add(
        "--quantize-only",
        default="",
        metavar="PART",
        help="quantize only weights with PART in their path, such as feed_forward (default: all "
        "matrices)",
    )
    add_old_option(parser, "--only", "--quantize-only")
    add(
        "--tolerance",
        type=float,
        metavar="X",
        help="largest change of outputs by --quantize or --compute (default: 0.001, 0.05 with "
        "--compute bfloat16, 0.1 with int8)",
    )
    add(
        "--serving-config",
        metavar="DIR",
        help="also write configuration files for TensorFlow Serving, docker compose and Kubernetes",
    )
    add(
        "--jit",
        action="store_true",
        help="compile with XLA: faster, but TensorFlow Serving then needs a GPU or "
        "--xla_cpu_compilation_enabled",
    )


def run(options: argparse.Namespace) -> None:
    """Exports and prints the version folder."""
    check_precision(options.compute, options.quantize, options.quantize_only, options.jit)
    with quiet_start():
        from keras_attn.data import read_texts
        from keras_attn.export import export_saved_model
        from keras_attn.export.serving_config import write_serving_config
        from keras_attn.tasks import GeneratingTask, Task, read_inputs, task_folder
        from keras_attn.training.reporting.held_out import held_out_inputs

    task = decoding_options.decoding_as_told(Task.load(task_folder(options.model)), options.set)
    most = 4
    if isinstance(task, GeneratingTask):
        task = task.with_decoding(beams=options.beams)
        most = min(most, task.decoding.beams)
    else:
        require(
            options.beams is None,
            "`--beams` is for models that generate text.",
            beams=options.beams,
        )
    examples: Sequence[Any] | None
    if options.examples:
        examples = read_inputs(task.kind, read_texts(options.examples))
    else:
        examples = _examples(task, held_out_inputs(options.model))
    path = export_saved_model(
        task,
        options.folder,
        jit=options.jit,
        n_best=most if options.n_best is None else options.n_best,
        examples=examples,
        version=options.model_version,
        weights=options.quantize,
        only=options.quantize_only,
        tolerance=options.tolerance,
        compute=options.compute,
    )
    print(path)
    if options.quantize != "float32" or options.compute != "float32":
        _print_change(path, is_made_up=examples is None)
    if options.serving_config:
        write_serving_config(path.parent, options.serving_config)
        print(f"TensorFlow Serving's configuration: {options.serving_config}", file=sys.stderr)


def _print_change(version: Path, is_made_up: bool) -> None:
    """Prints the sizes of weights and version, and the change of the outputs for examples."""
    manifest = read_manifest(version)
    weights = manifest["weights"]
    size = sum(path.stat().st_size for path in version.rglob("*") if path.is_file()) / 2**20
    before, after = weights["bytes_before"] / 2**20, weights["bytes"] / 2**20
    what = f"{weights['smaller']} weights in {weights['dtype']}"
    if manifest["compute"] != "float32":
        what += ", which it computes with"
    lines = [f"{what}: {before:.3g} -> {after:.3g} MiB; the version has {size:.3g} MiB"]
    examples = weights["change"]["examples"]
    lines += [
        f"  {name}: {change['changed']} of {examples} outputs are different, numbers differ by at "
        f"most {change['largest_difference']:.2g}"
        for name, change in weights["change"]["signatures"].items()
    ]
    if is_made_up:
        lines.append(
            f"The {examples} inputs are made up: --examples FILE measures on typical ones."
        )
    print(*lines, sep="\n", file=sys.stderr)


def _examples(task: Any, inputs: list[Any]) -> list[Any] | None:
    """Held-out inputs of a run before the task's own examples, which cover rare cases."""
    own = task.example_texts()
    kind = str if all(isinstance(example, str) for example in own) else bytes
    fitting = [one for one in inputs if isinstance(one, kind)]
    return [*fitting, *own] if fitting else None

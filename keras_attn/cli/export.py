"""Export a trained model as a SavedModel for TensorFlow Serving."""

import argparse
import sys

from keras_attn.cli import decoding_options
from keras_attn.cli.assignments import add_old_option
from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import require

EPILOG = """\
Strings in, strings out. The SavedModel is written to DIR/<version>/, where
the version is the next free number. Its signatures:
  serving_default   text -> the best text, its score and log-probability
  n_best            text -> several texts with scores
  score             text and target -> the target's log-probability
  token_ids         ids -> ids; n_best_token_ids and score_token_ids likewise
  attention         text, and target of what generates -> tokens, and what they attend to
  sample            of language models: text, seed, temperature, top_k and top_p -> a text drawn
                    at random; sample_default text and seed alone, sample_token_ids ids
For labels: serving_default and n_best give labels and their probabilities, token_ids takes ids.
For texts with gaps: serving_default and n_best give filled texts and their probabilities,
token_ids and n_best_token_ids ids with their gaps filled and probabilities.
For tags: serving_default gives them as one text, and each word's tag and its
probability, padded to the longest text; token_ids takes ids.
For vectors: serving_default and token_ids give an embedding.
For images: image_bytes, contents of PNG files, in place of text, and pixels in place of token_ids.
assets.extra/README.md of the version shows how a server is asked for each, with answers.

--quantize float16 or bfloat16 stores matrices in half of the room, int8 in a quarter. Computing
stays in float32, to which each request brings the weights once, so that a server saves no memory
and answers a little later. What that changes is measured on the examples (give typical ones) and
printed; more than --tolerance is refused: by default one answer in a thousand that is another, or
a number that differs by 0.001 (of itself, where it is above 1). --only feed_forward stores only
weights with that in their path so, often two thirds of all.

examples:
  keras-attn export runs/g2p exported/g2p
  keras-attn export runs/g2p exported/g2p --quantize float16 --examples words.txt
  keras-attn export runs/g2p exported/g2p --quantize int8 --tolerance 0.05 --examples words.txt
  keras-attn export runs/g2p exported/g2p --serving-config serving
  keras-attn verify exported/g2p
  tensorflow_model_server --model_name=g2p --model_base_path=$PWD/exported/g2p --rest_api_port=8501
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `export`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run or a task folder")
    add("folder", metavar="DIR", help="the model's folder, holding its versions")
    decoding_options.add_arguments(parser)
    add("--n-best", type=int, metavar="N", help="hypotheses of n_best (default: 4, or the beams)")
    add("--model-version", type=int, metavar="N", help="version (default: the next free number)")
    add(
        "--examples",
        metavar="FILE",
        help="lines of typical text, or names of PNG files, for warm-up and for `verify` "
        "(default: the commonest tokens)",
    )
    add(
        "--quantize",
        default="float32",
        metavar="DTYPE",
        help="stored as float32, float16, bfloat16 or int8 (default: float32)",
    )
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
        default=0.001,
        metavar="X",
        help="how far --quantize may change answers to the examples (default: 0.001)",
    )
    add(
        "--serving-config",
        metavar="DIR",
        help="also write a configuration of TensorFlow Serving, for docker compose and Kubernetes",
    )
    add(
        "--jit",
        action="store_true",
        help="compile with XLA: faster, but TensorFlow Serving then needs a GPU or "
        "--xla_cpu_compilation_enabled",
    )


def run(options: argparse.Namespace) -> None:
    """Exports and prints where to."""
    with quiet_start():
        from keras_attn.data import read_texts
        from keras_attn.export import export_saved_model
        from keras_attn.export.layout import read_manifest
        from keras_attn.export.serving_config import write_serving_config
        from keras_attn.tasks import GeneratingTask, Task, read_inputs, task_folder

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
    examples = read_inputs(task.kind, read_texts(options.examples)) if options.examples else None
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
    )
    print(path)
    if options.quantize != "float32":
        _print_change(read_manifest(path)["weights"])
    if options.serving_config:
        write_serving_config(path.parent, options.serving_config)
        print(f"TensorFlow Serving's configuration: {options.serving_config}", file=sys.stderr)


def _print_change(weights: dict) -> None:
    """Says what became of the weights, and of the answers to the examples."""
    before, after = weights["bytes_before"] / 2**20, weights["bytes"] / 2**20
    lines = [f"{weights['smaller']} weights in {weights['dtype']}: {before:.3g} -> {after:.3g} MiB"]
    examples = weights["change"]["examples"]
    lines += [
        f"  {name}: {change['changed']} of {examples} answers are others, numbers differ by at "
        f"most {change['largest_difference']:.2g}"
        for name, change in weights["change"]["signatures"].items()
    ]
    print(*lines, sep="\n", file=sys.stderr)

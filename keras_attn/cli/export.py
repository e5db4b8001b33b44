"""Export a trained model as a SavedModel for TensorFlow Serving."""

import argparse
import sys

from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import require

EPILOG = """\
Strings in, strings out. The SavedModel is written to DIR/<version>/, where
the version is the next free number. Its signatures:
  serving_default   text -> the best text, its score and log-probability
  n_best            text -> several texts with scores
  score             text and target -> the target's log-probability
  token_ids         ids -> ids
For labels: serving_default and n_best give labels and their probabilities, token_ids takes ids.
For texts with gaps: serving_default and n_best give filled texts and their probabilities,
token_ids ids with their gaps filled and the probability of each.
For tags: serving_default gives them as one text, and each word's tag and its
probability, padded to the longest text; token_ids takes ids.
For vectors: serving_default and token_ids give an embedding.
For images: image_bytes, contents of PNG files, in place of text, and pixels in place of token_ids.

--weights float16 halves the folder. Computing stays in float32, for which each
request casts the weights once, so that a server saves no memory and answers a
little later. It is refused where it changes a text, or a score by more than a
thousandth, of the examples: give typical ones. Then --halve feed_forward may
do: it halves only weights with that in their path, often two thirds of all.
bfloat16 has three bits fewer, too few for most models.

examples:
  keras-attn export runs/g2p exported/g2p
  keras-attn export runs/g2p exported/g2p --weights float16 --examples words.txt
  keras-attn verify exported/g2p
  tensorflow_model_server --model_name=g2p --model_base_path=$PWD/exported/g2p --rest_api_port=8501
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `export`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run or a task folder")
    add("folder", metavar="DIR", help="the model's folder, holding its versions")
    add("--beam", type=int, metavar="N", help="width of the beam search (default: the task's)")
    add("--n-best", type=int, metavar="N", help="hypotheses of n_best (default: 4, or the beams)")
    add("--model-version", type=int, metavar="N", help="version (default: the next free number)")
    add(
        "--examples",
        metavar="FILE",
        help="lines of typical text, or names of PNG files, for warm-up and for `verify` "
        "(default: the commonest tokens)",
    )
    add(
        "--weights",
        default="float32",
        metavar="DTYPE",
        help="stored as float32, float16 or bfloat16 (default: float32)",
    )
    add("--halve", default="", metavar="PART", help="which weights --weights is for (all)")
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
        from keras_attn.tasks import GeneratingTask, Task, read_inputs, task_folder

    task = Task.load(task_folder(options.model))
    most = 4
    if isinstance(task, GeneratingTask):
        task.decoding = task.decoding.replace(beams=options.beam)
        most = min(most, task.decoding.beams)
    else:
        require(options.beam is None, "Only what generates makes a beam search.", beam=options.beam)
    examples = read_texts(options.examples) if options.examples else None
    examples = examples and read_inputs(task.kind, examples)
    path = export_saved_model(
        task,
        options.folder,
        jit=options.jit,
        n_best=most if options.n_best is None else options.n_best,
        examples=examples,
        version=options.model_version,
        weights=options.weights,
        halved=options.halve,
    )
    print(path)
    if options.weights != "float32":
        stored = read_manifest(path)["weights"]
        print(
            f"{stored['halved']} weights in {stored['dtype']}: equal texts for all examples, and "
            f"scores that differ by at most {stored['largest_difference']:.4%}.",
            file=sys.stderr,
        )

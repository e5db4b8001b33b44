"""Show the attention of a model for a text, as a picture or an interactive page.

FILE.html is a self-contained page with the attention of all layers and heads, their mean, attention
rollout and, for seq2seq models, an alignment. FILE.png contains a heat map for each layer and head;
it needs matplotlib (pip install 'keras_attn[viz]').

The decoder of a seq2seq model reads --target, by default the prediction of the model. A language
model reads TEXT followed by --target. For an image classifier TEXT is the name of a PNG file.

examples:
  keras-attn visualize saved_models/g2p_en transformer --out attention.html
  keras-attn visualize runs/en-de "A dog runs." --target "Ein Hund rennt." --out attention.html
  keras-attn visualize runs/g2p colonel --attention cross --layer 2 --out cross.png
"""

import argparse

from keras_attn.cli.options import output_file
from keras_attn.cli.terminal import quiet_start
from keras_attn.files import replaced_file
from keras_attn.validation import UserError, require

_GROUPS = ("encoder", "decoder", "cross")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `visualize`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run or a task folder")
    add("text", metavar="TEXT", help="text that the model reads")
    add("--target", metavar="TEXT", help="text that the decoder reads (default: the prediction)")
    add(
        "--out",
        type=output_file,
        required=True,
        metavar="FILE",
        help="output file, FILE.png or FILE.html",
    )
    add = parser.add_argument_group("for FILE.png").add_argument
    add("--attention", choices=_GROUPS, metavar="PART", help=f"only {', '.join(_GROUPS)}")
    add("--layer", type=int, metavar="N", help="only this layer, from 1")
    add("--head", type=int, metavar="N", help="only this head, from 1")


def run(options: argparse.Namespace) -> None:
    """Writes the picture or the page, and prints where it is."""
    kind = options.out.suffix.lower()
    if kind not in (".png", ".html"):
        raise UserError(f"--out takes FILE.png or FILE.html. Received: {options.out}")
    chosen = {"attention": options.attention, "layer": options.layer, "head": options.head}
    given = {name: value for name, value in chosen.items() if value is not None}
    require(
        kind == ".png" or not given,
        "--attention, --layer and --head are only for pictures; a page shows everything.",
        **given,
    )
    with quiet_start():
        from keras_attn.tasks import Task, task_folder
        from keras_attn.visualization import draw_attention, text_attention, write_page

    task = Task.load(task_folder(options.model))
    attention = text_attention(task, options.text, options.target)
    if kind == ".html":
        write_page(attention, options.out)
    else:
        with replaced_file(options.out) as temporary:
            draw_attention(attention, temporary, *chosen.values())
    print(options.out)

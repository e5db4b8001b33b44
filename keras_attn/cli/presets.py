"""List the named models: sizes, parameters, paper, and the recipes that train them.

examples:
  keras-attn presets
  keras-attn presets --vocabulary 10000
  keras-attn presets --recipe bert_tiny.token_classification > my.yaml
  keras-attn train --config my.yaml --data ...
"""

import argparse
import functools
import inspect

import yaml

from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import require_positive

_OF_SERIES = {"context": 48, "horizon": 12}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `presets`."""
    count = "count parameters for N tokens shared by source and target (default: 41000, which fits "
    add_value(parser, "--vocabulary", 41_000, count + "the table of the Transformer's paper)")
    parser.add_argument(
        "--recipe",
        metavar="NAME",
        help="print the settings that train a preset, PRESET or PRESET.TASK, for `train --config`",
    )


def run(options: argparse.Namespace) -> None:
    """Prints the presets, grouped by paper."""
    require_positive(vocabulary=options.vocabulary)
    with quiet_start():
        from keras_attn.models import PRESETS
        from keras_attn.models.presets import find_recipe

    if options.recipe:
        print(yaml.safe_dump(find_recipe(options.recipe), sort_keys=False), end="")
        return
    print("Sizes of randomly initialized models, and the tasks for which they have recipes.")
    print(
        f"Parameters with {options.vocabulary:,} tokens, shared by source and target; to forecast "
        f"{_OF_SERIES['horizon']} steps from {_OF_SERIES['context']}."
    )
    width = max(map(len, PRESETS))
    heading = None
    for name, preset in PRESETS.items():
        if heading != (preset.family, preset.paper):
            heading = (preset.family, preset.paper)
            print(f"\n{preset.family} — {preset.paper}")
        # Dropout has no parameters; presets often differ only in it.
        sizes = frozenset(preset.config.items()) - {("dropout", preset.config.get("dropout"))}
        parameters = _count_parameters(preset.family, sizes, options.vocabulary)
        digits = 1 if parameters >= 1e5 else 3
        tasks = ", ".join(preset.tasks)
        print(
            f"  {name:<{width}} {parameters / 1e6:7.{digits}f} M  {preset.description} ({tasks})",
            flush=True,
        )


@functools.cache
def _count_parameters(family: str, sizes: frozenset, vocabulary_size: int) -> int:
    from keras_attn import models
    from keras_attn.models.parameter_count import parameter_count

    model = getattr(models, family)
    of_data = _OF_SERIES | {"vocabulary_size": vocabulary_size}
    accepted = inspect.signature(model).parameters
    arguments = {name: size for name, size in of_data.items() if name in accepted} | dict(sizes)
    return parameter_count(lambda: model(**arguments))

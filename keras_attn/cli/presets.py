"""List the named models: sizes, parameters, paper."""

import argparse
import math

from keras_attn.cli.terminal import quiet_start

EPILOG = """\
examples:
  keras-attn presets
  keras-attn presets --vocabulary 10000
  keras-attn train --preset transformer_tiny ...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `presets`."""
    parser.add_argument(
        "--vocabulary",
        type=int,
        default=41_000,
        metavar="N",
        help="count parameters for N tokens shared by source and target (default: 41000, which "
        "fits the table of the Transformer's paper)",
    )


def run(options: argparse.Namespace) -> None:
    """Prints the table of presets."""
    from keras_attn.validation import require_positive

    require_positive(vocabulary=options.vocabulary)
    with quiet_start():
        from keras_attn.models import PRESETS

    print(f"Parameters with {options.vocabulary:,} tokens, shared by source and target.\n")
    width = max(map(len, PRESETS))
    for name, preset in PRESETS.items():
        parameters = _count_parameters(name, preset.family, options.vocabulary)
        print(f"{name:<{width}}  {preset.family}  {parameters / 1e6:6.1f} M  {preset.description}")
        print(f"{'':<{width}}  {preset.paper}")


def _count_parameters(name: str, family: str, vocabulary_size: int) -> int:
    import keras

    from keras_attn import models

    # In a stateless scope the weights get shapes but no values: nothing is drawn or stored.
    with keras.StatelessScope():
        model = getattr(models, family).from_preset(name, vocabulary_size)
    return sum(math.prod(variable.shape) for variable in model.trainable_variables)

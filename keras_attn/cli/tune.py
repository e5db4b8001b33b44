"""Search for good settings with many short runs.

Every trial is a separate run of `keras-attn train`. Results are written to TUNING/trials.csv,
trials.png and best.yaml. The search space depends on the preset's family; settings given by options
or --set are the same in all trials. --space FILE changes the search space:

  training.learning_rate: {min: 3.0e-4, max: 1.0e-2, log: true}
  model.num_layers: {min: 1, max: 4}
  model.hidden_dim: [128, 256]
  model.norm_first: true                      # one value: the same in all trials
  attention.name: [dense, local, linear]      # the mechanism
  positions: {sinusoidal: {}, rotary: {model.rotary_positions: true}}

On a cluster, start the same command on each machine, with KerasTuner's variables
KERASTUNER_TUNER_ID (chief, worker0, …), KERASTUNER_ORACLE_IP and KERASTUNER_ORACLE_PORT set and
TUNING on a shared disk. A worker waits training.join_timeout (300) for its chief.

examples:
  keras-attn tune --preset g2p_small --data cmudict --out tuning/g2p --trials 12 --trial-minutes 1
  keras-attn tune --preset g2p_small --data cmudict --out tuning/g2p --space space.yaml --workers 2
  keras-attn tune --out tuning/g2p --resume
  keras-attn train --config tuning/g2p/best.yaml --out runs/g2p
"""

import argparse
import importlib.util
from typing import Any

from keras_attn.cli import train as train_command
from keras_attn.cli.terminal import quiet_start
from keras_attn.processes import python_command
from keras_attn.validation import UserError

# Fields of TuningSettings.
_NUMBERS = (
    *("algorithm", "trials", "minutes", "trial_minutes", "trial_epochs"),
    *("max_parameters", "workers", "seed"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `tune`."""
    add = parser.add_argument
    add("--out", required=True, metavar="TUNING", help="the folder of the search, new or empty")
    train_command.add_setting_arguments(parser)
    add("--space", metavar="FILE", help="file of the search space (see below)")
    add("--algorithm", metavar="NAME", help="random, bayesian (the default) or hyperband")
    trials = "most trials (default: 12; hyperband chooses a number)"
    add("--trials", type=int, metavar="N", help=trials)
    add("--minutes", type=float, metavar="M", help="start no trial after M minutes")
    add("--trial-minutes", type=float, metavar="M", help="training time of a trial")
    add("--trial-epochs", type=int, metavar="N", help="epochs of a trial")
    add("--max-parameters", type=int, metavar="N", help="refuse models with more parameters")
    workers = "trials at the same time, in processes of their own (1)"
    add("--workers", type=int, metavar="N", help=workers)
    add("--resume", action="store_true", help="continue the search in the folder with its settings")


def run(options: argparse.Namespace) -> int | None:
    """Searches."""
    if importlib.util.find_spec("keras_tuner") is None:
        raise UserError("A search needs KerasTuner: pip install 'keras_attn[tune]'.")
    from keras_attn.tuning.processes import run_chief_and_workers, tuning_role

    alone = tuning_role() == "alone"
    numbers = _recorded(options) | {
        name: getattr(options, name) for name in _NUMBERS if getattr(options, name) is not None
    }
    if alone and numbers.get("workers", 1) > 1:
        command = python_command("keras_attn", *options.arguments)
        return run_chief_and_workers(command, numbers["workers"])
    with quiet_start():
        from keras_attn.training.run_settings import read_yaml
        from keras_attn.tuning.tune import tune
        from keras_attn.tuning.tuning_settings import TuningSettings

    config, *layers = train_command.settings_layers(options)
    tune(
        options.out,
        *layers,
        config=config,
        space=read_yaml(options.space) if options.space else None,
        tuning=TuningSettings(**numbers),
        resume=options.resume,
    )
    return None


def _recorded(options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of the search to resume."""
    if not options.resume:
        return {}
    with quiet_start():
        from keras_attn.tuning.tuning_settings import recorded_search
    return recorded_search(options.out).get("tuning", {})

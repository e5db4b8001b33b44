"""Run with `python -m`: whole runs, runs that kill themselves as SIGKILL would, resumed ones.

Arguments: data file, then for each run its folder and "nowhere", "dies" or "resume".
"""

import os
import signal
import sys

from keras_attn.training import run as job
from keras_attn.training.loop.checkpoints import Checkpoints
from tests.training.made_run import run_settings


def dies_after(owner, name, calls):
    """Makes the process die at the end of a function's `calls`-th call."""
    function = getattr(owner, name)
    seen = []

    def dying(*arguments, **options):
        result = function(*arguments, **options)
        seen.append(name)
        if len(seen) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


if __name__ == "__main__":
    data, *runs = sys.argv[1:]
    layer = run_settings(data, deterministic=True, checkpoint_every=5, average_last=2)
    layer["model"]["dropout"] = 0.3
    for folder, moment in zip(runs[::2], runs[1::2], strict=True):
        if moment == "dies":
            dies_after(Checkpoints, "write", 3)
        if moment == "resume":
            job.train(folder, resume=True)
        else:
            job.train(folder, layer)

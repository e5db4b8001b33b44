"""Run with `python -m` in a mount namespace of its own: a run on a disk that becomes full.

Argument: a folder to work in. Prints its findings as JSON.
"""

import json
import os
import pathlib
import subprocess
import sys

import yaml

from keras_attn.training.loop.checkpoints import read_checkpoint
from keras_attn.validation import UserError
from tests.training.made_run import run_settings, write_words
from tests.training.two_workers import are_equal, metrics, start


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def mount(disk, option):
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", disk], check=True)


def sound(folder):
    try:
        read_checkpoint(folder)
    except UserError:
        return False
    return True


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    data = write_words(folder / "words.tsv", 150, seed=1)
    # Validations at the first row and at every checkpoint, which are kept then.
    often = {"log_every": 4, "validate_every": 4, "checkpoint_every": 4, "keep_checkpoints": 50}
    settings = run_settings(data, epochs=9, deterministic=True, **often)
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    found = {"whole": start(folder / "whole", config).wait()}
    disk = folder / "disk"
    disk.mkdir()
    mount(disk, f"size={int(0.6 * size(folder / 'whole'))}")
    run = disk / "run"
    # Its log goes to another disk.
    log = folder / "log"
    command = [sys.executable, "-m", "keras_attn", "train", "--config", config, "--out", run]
    with log.open("wb") as file:
        found["full"] = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
    found["last_line"] = log.read_text().strip().splitlines()[-1]
    found["traceback"] = "Traceback" in log.read_text()
    checkpoints = sorted((run / "checkpoints").glob("step-*"))
    found["checkpoints"] = len(checkpoints)
    found["sound"] = all(map(sound, checkpoints))
    whole_rows = metrics(folder / "whole").splitlines()
    found["rows"] = all(row in whole_rows for row in metrics(run).splitlines())
    mount(disk, "remount,size=1g")
    with log.open("ab") as file:
        done = subprocess.run([*command, "--resume"], stdout=file, stderr=file, check=False)
    found["resumed"] = done.returncode
    found["equal"] = are_equal(run, folder / "whole")
    print(json.dumps(found))

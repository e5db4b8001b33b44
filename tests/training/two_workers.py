"""Run with `python -m`: trainings by two workers on this machine, prints its findings as JSON.

Arguments: a folder to work in, and the scenario.
"""

import functools
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import h5py
import numpy as np
import yaml

from tests.training.made_run import run_settings, write_words

LOST_SECONDS = 4.0


def free_ports(count):
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def start(run, config, workers=None, index=None, resume=False):
    """One process of `keras-attn train`."""
    command = [sys.executable, "-m", "keras_attn", "train", "--config", config, "--out", run]
    if workers:
        command += ["--workers", ",".join(workers), "--worker-index", str(index)]
    if resume:
        command.append("--resume")
    with pathlib.Path(f"{run}.{index}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def pair(run, config, resume=False):
    """Two processes that are each other's workers."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    return [start(run, config, workers, index, resume) for index in (0, 1)]


def statuses(processes):
    """How they ended, and how long that took."""
    before = time.monotonic()
    try:
        codes = [process.wait(300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return {"codes": codes, "seconds": time.monotonic() - before}


def weights(run):
    items = []
    with h5py.File(run / "task" / "model.weights.h5") as file:
        file.visititems(lambda *item: items.append(item))
        return {name: item[()] for name, item in items if isinstance(item, h5py.Dataset)}


def metrics(run):
    return (run / "metrics.csv").read_text()


def are_equal(run, other):
    """Whether two runs have the same metrics and weights, to the bit."""
    pairs = zip(weights(run).values(), weights(other).values(), strict=True)
    return metrics(run) == metrics(other) and all(np.array_equal(*pair) for pair in pairs)


def wait_for_checkpoint(run):
    while not list((run / "checkpoints").glob("step-*")):
        time.sleep(0.02)


def equal(folder, config):
    """Two workers against one process, in float64 and without dropout."""
    settings = yaml.safe_load(config.read_text())
    settings["model"]["dropout"] = 0.0
    settings["training"] |= {"precision": "float64", "steps": 50, "epochs": None}
    config.write_text(yaml.safe_dump(settings))
    found = {"one": statuses([start(folder / "one", config)])["codes"]}
    found["two"] = statuses(pair(folder / "two", config))["codes"]
    one, two = weights(folder / "one"), weights(folder / "two")
    found["weights"] = max(float(np.abs(one[name] - two[name]).max()) for name in one)
    rows = [
        np.genfromtxt(folder / name / "metrics.csv", delimiter=",", skip_header=1)
        for name in ("one", "two")
    ]
    found["metrics"] = float(np.nanmax(np.abs(rows[0] - rows[1])))
    found["rows"] = len(rows[0])
    return found


def ended(folder, config, number, index, seconds=0.0):
    """A run whose worker `index` gets a signal, and goes on; against one that got none.

    The signal comes some seconds after the first checkpoint.
    """
    whole = statuses(pair(folder / "whole", config))["codes"]
    run = folder / "parts"
    processes = pair(run, config)
    wait_for_checkpoint(run)
    time.sleep(seconds)
    processes[index].send_signal(number)
    found = {"whole": whole, "ended": statuses(processes)}
    found["goes_on"] = statuses(pair(run, config, resume=True))["codes"]
    found["equal"] = are_equal(folder / "whole", run)
    return found


def refused(folder, config, what):
    """Two workers that cannot work together: their statuses and last lines."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    runs, configs = [folder / "run"] * 2, [config] * 2
    if what == "folders":
        runs[1] = folder / "other"
    others = {
        "seeds": ("training", "seed", 7),
        "data": ("data", "train", [write_words(folder / "others.tsv", 150, seed=2)]),
        "crash": ("data", "train", [str(folder / "nowhere.tsv")]),
    }
    if what in others:
        section, name, value = others[what]
        configs[1] = folder / "other.yaml"
        settings = yaml.safe_load(config.read_text())
        settings[section][name] = value
        configs[1].write_text(yaml.safe_dump(settings))
    with socket.create_server(("", 0)) as server:
        if what == "port":
            workers[1] = f"127.0.0.1:{server.getsockname()[1]}"
        found = statuses([start(runs[i], configs[i], workers, i) for i in (0, 1)])
    logs = [pathlib.Path(f"{runs[i]}.{i}.log").read_text().splitlines() for i in (0, 1)]
    found["said"] = [[line for line in log if line.startswith("keras-attn: ")] for log in logs]
    return found


if __name__ == "__main__":
    folder, scenario = pathlib.Path(sys.argv[1]), sys.argv[2]
    data = write_words(folder / "words.tsv", 150, seed=1)
    settings = run_settings(
        data,
        epochs=9,
        checkpoint_every=4,
        join_timeout=120,
        heartbeat_timeout=LOST_SECONDS,
        deterministic=True,
    )
    settings["metrics"] = []
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    scenarios = {
        "equal": lambda: equal(folder, config),
        "killed": lambda: ended(folder, config, signal.SIGKILL, 1),
        "chief killed": lambda: ended(folder, config, signal.SIGKILL, 0),
        "terminated": lambda: ended(folder, config, signal.SIGTERM, 1),
    }
    for seed in range(5):
        moment = random.Random(seed)
        scenarios[f"killed at random {seed}"] = functools.partial(
            ended, folder, config, signal.SIGKILL, moment.randrange(2), moment.uniform(0, 4)
        )
    for what in ("folders", "seeds", "data", "port", "crash"):
        scenarios[f"refused {what}"] = functools.partial(refused, folder, config, what)
    print(json.dumps(scenarios[scenario]()))

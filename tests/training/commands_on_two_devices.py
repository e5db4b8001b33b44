"""Run with `python -m` and a JSON list of command lines: runs each on two logical CPUs.

Prints a JSON list of `[status, standard output]` as its last line.
"""

import contextlib
import io
import json
import sys

import tensorflow as tf

from keras_attn.cli import main

if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    found = []
    for command in json.loads(sys.argv[1]):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = main(command)
        found.append([status, output.getvalue()])
        if status:
            break
    print(json.dumps(found))

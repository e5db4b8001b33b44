"""What TensorFlow was told on two cores before it began, and that telling it later does no harm."""

import json
import os
import sys

import tensorflow as tf

from keras_attn.training.cpu import prepare_cpu

if __name__ == "__main__":
    os.sched_getaffinity = lambda process: {0, 1}
    parts, precision = int(sys.argv[1]), sys.argv[2]
    prepare_cpu(parts, precision)
    tf.constant(0)
    prepare_cpu(parts + 1, precision)
    threading = tf.config.threading
    told = [
        threading.get_intra_op_parallelism_threads(),
        threading.get_inter_op_parallelism_threads(),
        tf.config.optimizer.get_experimental_options().get("remapping", True),
    ]
    print(json.dumps(told))

"""Threads that TensorFlow was told on two cores before it began; telling it later does no harm."""

import json
import os
import sys

import tensorflow as tf

from keras_attn.training.workers.strategy import share_cores

if __name__ == "__main__":
    os.sched_getaffinity = lambda process: {0, 1}
    parts = int(sys.argv[1])
    share_cores(parts)
    tf.constant(0)
    share_cores(parts + 1)
    threading = tf.config.threading
    intra = threading.get_intra_op_parallelism_threads()
    print(json.dumps([intra, threading.get_inter_op_parallelism_threads()]))

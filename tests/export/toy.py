"""A task without Keras: spells letters, adds up a weight for each, and repeats each in a loop."""

import shutil

import numpy as np
import tensorflow as tf

from keras_attn.export import verify
from keras_attn.tasks.serving import ServingFunction

LETTERS = "abcde"
WEIGHTS = np.array([0.0, 0.0, 0.0, -1.0, 2.0, 3.0, 5.0, 7.0, 11.0], np.float32)
STEPS = 3


def expected(text):
    """What the task answers, in plain Python: known letters thrice, and three times their sum."""
    known = [letter for letter in text if letter in LETTERS]
    total = sum(WEIGHTS[4 + LETTERS.index(letter)] for letter in known)
    return "".join(STEPS * letter for letter in known), STEPS * (total - (len(text) - len(known)))


class ToyTask:
    """Pads with id 0, has 3 for unknown letters and 4 to 8 for "abcde"."""

    kind = "toy"

    def __init__(self):
        ids = tf.range(4, 4 + len(LETTERS), dtype=tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(list(LETTERS), ids)
        self.encoder = tf.lookup.StaticHashTable(initializer, 3)
        initializer = tf.lookup.KeyValueTensorInitializer(ids, list(LETTERS))
        self.decoder = tf.lookup.StaticHashTable(initializer, "")
        self.weights = tf.Variable(WEIGHTS)

    def _core(self, ids):
        def step(index, score):
            return index + 1, score + tf.reduce_sum(tf.gather(self.weights, ids), axis=1)

        start = (tf.constant(0), tf.zeros(tf.shape(ids)[:1]))
        return tf.while_loop(lambda index, _: index < STEPS, step, start)[1]

    def encode(self, text):
        # (batch, length) int32
        letters = tf.strings.unicode_split(text, "UTF-8").to_tensor("")
        return tf.where(letters == "", 0, tf.cast(self.encoder.lookup(letters), tf.int32))

    def example_texts(self):
        return ["example", "a", "a longer example"]

    def serving_functions(self, n_best, jit=False):
        core = tf.function(self._core, autograph=False, jit_compile=jit)

        def text_to_text(text):
            ids = self.encode(text)
            letters = self.decoder.lookup(tf.cast(ids, tf.int64))
            repeated = tf.repeat(letters, STEPS, axis=1)
            return {"text": tf.strings.reduce_join(repeated, axis=1), "score": core(ids)}

        def ids_to_scores(token_ids):
            return {"scores": tf.tile(core(token_ids)[:, None], [1, n_best])}

        ids = tf.TensorSpec([None, None], tf.int32)
        return {
            "serving_default": ServingFunction(
                text_to_text, {"text": tf.TensorSpec([None], tf.string)}
            ),
            "token_ids": ServingFunction(
                ids_to_scores,
                {"token_ids": ids},
                lambda texts: {"token_ids": self.encode(texts).numpy()},
            ),
        }

    def resources(self):
        return [self.encoder, self.decoder, self.weights]


def save(folder, function, *specs, jit=False, **named):
    """Saves one function of tensors as a SavedModel with the signature `serving_default`."""
    module = tf.Module()
    module.function = tf.function(function, autograph=False, jit_compile=jit or None)
    signature = module.function.get_concrete_function(*specs, **named)
    tf.saved_model.save(module, str(folder), {"serving_default": signature})
    return folder


def named(name, shape, dtype):
    return tf.TensorSpec(shape, dtype, name=name)


def strings(*values):
    """Bytes as an array of objects."""
    return np.array(values, object)


def verified(folder, **options):
    """The report of an export without a fault."""
    report = verify(folder, **options)
    assert report.ok, str(report)
    return report


def removed(path):
    """Damages an export: a file or folder is missing."""

    def damage(folder):
        found = folder / path
        shutil.rmtree(found) if found.is_dir() else found.unlink()

    return damage


def truncated(path, length):
    """Damages an export: the last bytes of a file are missing."""
    return lambda folder: (folder / path).write_bytes((folder / path).read_bytes()[:-length])

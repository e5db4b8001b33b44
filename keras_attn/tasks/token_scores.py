"""How well a model tells the tokens of examples."""

import math

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import Examples, plan_epoch
from keras_attn.ops.cross_entropy import token_cross_entropy

_MEASURED_TOKENS = 4096


def token_scores(model: keras.Model, examples: Examples) -> dict[str, float]:
    """Measures a model on the labels of examples.

    Args:
        model: From the inputs of the examples to logits.
        examples: Tokenised examples, the label 0 where there is none.

    Returns:
        The "perplexity" of the labels, and the "accuracy" of the first guesses in percent.
    """
    summed = tf.function(
        lambda inputs, labels: tf.stack(token_cross_entropy(labels, model(inputs))),
        input_signature=examples.signature,
        autograph=False,
    )
    sums = np.zeros(4)
    for rows in plan_epoch(examples, max(_MEASURED_TOKENS, int(examples.lengths.max())), seed=None):
        sums += summed(*examples.assemble(rows)).numpy()
    _, nll, tokens, correct = sums.tolist()
    return {
        "perplexity": math.exp(min(nll / max(tokens, 1), 700)),
        "accuracy": 100 * correct / max(tokens, 1),
    }

"""The judge of sampling: the probability of every text, from rules written out in numpy."""

import numpy as np

from tests.generation.toy_models import log_softmax


def ruled(logits, seen, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0):
    """The probabilities that are drawn from, of a numpy vector of logits."""
    logits = np.array(logits, "float64")
    for token in seen:
        factor = repetition_penalty if logits[token] < 0 else 1 / repetition_penalty
        logits[token] *= factor
    logits /= temperature
    order = np.argsort(-logits, kind="stable")
    if top_k:
        logits[order[top_k:]] = -np.inf
    probabilities = np.exp(log_softmax(logits))
    mass = 0.0
    for place, token in enumerate(order):
        if mass >= top_p:
            probabilities[order[place:]] = 0
            break
        mass += probabilities[token]
    return probabilities / probabilities.sum()


def text_probabilities(
    next_logits, vocabulary, end, longest, shortest=0, forbidden=(), prompt=(), **rules
):
    """`{text: (probability of being drawn, log-probability under the model)}` of every text."""
    found = {}

    def follow(prefix, probability, log_probability):
        logits = np.asarray(next_logits(prefix), "float64")
        offered = logits.copy()
        offered[list(forbidden)] = -np.inf
        if len(prefix) + 1 < shortest:
            offered[end] = -np.inf
        if len(prefix) + 1 == longest:
            offered[np.arange(vocabulary) != end] = -np.inf
        drawn = ruled(offered, {*prompt, *prefix}, **rules)
        model = log_softmax(logits)
        for token in np.flatnonzero(drawn):
            text = (*prefix, int(token))
            now = probability * drawn[token], log_probability + model[token]
            if token == end:
                found[text] = now
            else:
                follow(text, *now)

    follow((), 1.0, 0.0)
    return found


def chi_square(counts, probabilities, total):
    """Of texts counted, the statistic and its degrees of freedom; rare texts are one class."""
    common = [text for text, probability in probabilities.items() if probability * total >= 8]
    expected = [probabilities[text] * total for text in common]
    observed = [counts.get(text, 0) for text in common]
    rest = total - sum(expected)
    if rest > 8:
        expected.append(rest)
        observed.append(total - sum(observed))
    pairs = zip(observed, expected, strict=True)
    return sum((one - other) ** 2 / other for one, other in pairs), len(expected) - 1

"""The judges: every sequence enumerated, and decoding in lists and tuples.

Each takes `next_log_probabilities(prefix)`, a function of a tuple of tokens, and gives a list of
(score, log-probability, tokens), best first.
"""

import heapq
import itertools
import math


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def _offered(token, position, end, shortest, longest, forbidden):
    if position == longest:
        return token == end
    if token == end:
        return position >= shortest
    return token not in forbidden


def enumerate_all(
    next_log_probabilities, vocabulary, end, longest, alpha, shortest=0, forbidden=()
):
    """Every sequence that ends once, at its end, with a probability above 0."""
    inner = [token for token in range(vocabulary) if token != end and token not in forbidden]
    following, found = {}, []
    for length in range(max(shortest, 1), longest + 1):
        for body in itertools.product(inner, repeat=length - 1):
            text, total = (*body, end), 0.0
            for position, token in enumerate(text):
                prefix = text[:position]
                if prefix not in following:
                    following[prefix] = next_log_probabilities(prefix)
                total += following[prefix][token]
            if total > -math.inf:
                found.append((total / penalty(length, alpha), total, text))
    return sorted(found, key=lambda entry: -entry[0])


def beam(
    next_log_probabilities,
    end,
    beams,
    longest,
    alpha,
    n_best=1,
    shortest=0,
    forbidden=(),
    stop_early=False,
):
    """Beam search by its definition; also gives the count of positions looked at."""
    live, finished = [(0.0, ())], []
    for position in range(1, longest + 1):
        candidates = []
        for total, prefix in live:
            for token, log_probability in enumerate(next_log_probabilities(prefix)):
                if log_probability > -math.inf and _offered(
                    token, position, end, shortest, longest, forbidden
                ):
                    candidates.append((total + log_probability, (*prefix, token)))
        candidates = heapq.nlargest(2 * beams, candidates, key=lambda entry: entry[0])
        live = [entry for entry in candidates if entry[1][-1] != end][:beams]
        for total, text in candidates:
            if text[-1] == end:
                finished.append((total / penalty(position, alpha), total, text))
        best = heapq.nlargest(n_best, finished, key=lambda entry: entry[0])
        if not live:
            break
        hope = live[0][0] / penalty(longest, alpha)
        if stop_early and len(best) == n_best and best[-1][0] >= hope:
            break
    return best, position


def greedy(next_log_probabilities, end, longest, shortest=0, forbidden=()):
    """The most probable token, again and again; nothing where there is none."""
    total, text = 0.0, ()
    for position in range(1, longest + 1):
        following = next_log_probabilities(text)
        offered = [
            token
            for token in range(len(following))
            if following[token] > -math.inf
            and _offered(token, position, end, shortest, longest, forbidden)
        ]
        if not offered:
            return []
        token = max(offered, key=lambda token: following[token])
        total, text = total + following[token], (*text, token)
        if token == end:
            break
    return [(total, total, text)]

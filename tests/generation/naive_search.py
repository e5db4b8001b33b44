"""The judges: every sequence enumerated, and decoding in lists and tuples.

Each takes `next_log_probabilities(prefix)`, a function of a tuple of tokens, and gives a list of
(score, log-probability, tokens), best first.
"""

import heapq
import itertools
import math


def penalty(length, alpha, form="gnmt"):
    return length**alpha if form == "length" else ((5 + length) / 6) ** alpha


def repeats(text, size):
    """Whether some run of `size` tokens occurs twice."""
    runs = [text[place : place + size] for place in range(len(text) - size + 1)]
    return len(set(runs)) < len(runs)


def holds(text, sequence):
    size = len(sequence)
    return any(text[place : place + size] == sequence for place in range(len(text)))


def keeps(text, ngram=0, banned=(), prefix=()):
    """Whether a text, ended or not, keeps the constraints; those of a prefix count for the rest."""
    if any(one != other for one, other in zip(text, prefix, strict=False)):
        return False
    for length in range(len(prefix) + 1, len(text) + 1):
        part = text[:length]
        if ngram and part[-ngram:] in [
            part[place : place + ngram] for place in range(length - ngram)
        ]:
            return False
        if any(part[-len(sequence) :] == sequence for sequence in banned):
            return False
    return True


def _offered(token, position, end, shortest, longest, forbidden):
    if position == longest:
        return token == end
    if token == end:
        return position >= shortest
    return token not in forbidden


def enumerate_all(
    next_log_probabilities,
    vocabulary,
    end,
    longest,
    alpha,
    shortest=0,
    forbidden=(),
    form="gnmt",
    is_kept=lambda text: True,
    bonus=lambda text: 0.0,
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
            if total > -math.inf and is_kept(text):
                found.append((total / penalty(length, alpha, form) + bonus(text), total, text))
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
    stopping="exact",
    form="gnmt",
    is_kept=lambda text: True,
    bonus=lambda text: 0.0,
):
    """Beam search by its definition; also gives the count of positions looked at."""
    live, finished = [(0.0, ())], []
    for position in range(1, longest + 1):
        candidates = []
        for total, prefix in live:
            for token, log_probability in enumerate(next_log_probabilities(prefix)):
                if (
                    log_probability > -math.inf
                    and _offered(token, position, end, shortest, longest, forbidden)
                    and is_kept((*prefix, token))
                ):
                    candidates.append((total + log_probability, (*prefix, token)))
        candidates = heapq.nlargest(2 * beams, candidates, key=lambda entry: entry[0])
        live = [entry for entry in candidates if entry[1][-1] != end][:beams]
        for rank, (total, text) in enumerate(candidates):
            if text[-1] == end and (stopping == "exact" or rank < beams):
                score = total / penalty(position, alpha, form) + bonus(text)
                finished.append((score, total, text))
        kept = n_best if stopping == "exact" else beams
        best = heapq.nlargest(kept, finished, key=lambda entry: entry[0])
        if not live:
            break
        is_full = len(best) == kept
        if stopping == "early" and is_full:
            break
        length = longest if stopping == "exact" else position
        hope = live[0][0] / penalty(length, alpha, form)
        may_stop = stop_early or stopping == "heuristic"
        if may_stop and stopping != "early" and is_full and best[-1][0] >= hope:
            break
    return best[:n_best], position


def greedy(
    next_log_probabilities, end, longest, shortest=0, forbidden=(), is_kept=lambda text: True
):
    """The most probable token, again and again; nothing where there is none."""
    total, text = 0.0, ()
    for position in range(1, longest + 1):
        following = next_log_probabilities(text)
        offered = [
            token
            for token in range(len(following))
            if following[token] > -math.inf
            and _offered(token, position, end, shortest, longest, forbidden)
            and is_kept((*text, token))
        ]
        if not offered:
            return []
        token = max(offered, key=lambda token: following[token])
        total, text = total + following[token], (*text, token)
        if token == end:
            break
    return [(total, total, text)]

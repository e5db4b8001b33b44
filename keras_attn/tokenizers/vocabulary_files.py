"""Vocabulary files of BERT and GPT-2."""

from keras_attn.documents import parse_json
from keras_attn.validation import require


def word_piece_tokens(text: str) -> list[str]:
    """Returns the tokens of a `vocab.txt`: its lines, which end at a line feed and nothing else."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def bpe_vocabulary(text: str, name: str) -> list[str]:
    """Returns the tokens of a `vocab.json`, which maps each to its id, in the order of ids.

    Args:
        text: Contents of the file.
        name: Name of the file in messages.

    Raises:
        UserError: The file is not such a map, or ids are missing or appear twice.
    """
    ids = parse_json(text, name)
    whole = isinstance(ids, dict) and all(type(value) is int for value in ids.values())
    require(whole and bool(ids), f"{name}: a JSON object of tokens and their ids is expected.")
    tokens = sorted(ids, key=ids.__getitem__)
    for position, token in enumerate(tokens):
        require(
            ids[token] == position,
            f"{name}: the ids must be 0 to {len(ids) - 1}, each once.",
            token=token,
            id=ids[token],
        )
    return tokens


def bpe_merges(text: str, name: str) -> list[tuple[str, str]]:
    """Returns the merges of a `merges.txt`: a pair of tokens a line, a version line before them.

    Args:
        text: Contents of the file.
        name: Name of the file in messages.

    Raises:
        UserError: A line is not a pair.
    """
    merges = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if (number == 1 and line.startswith("#version")) or not line:
            continue
        parts = line.split(" ")
        pair = len(parts) == 2 and all(parts)
        require(pair, f"{name}, line {number}: two tokens and a space are expected.", line=line)
        merges.append((parts[0], parts[1]))
    return merges

"""Byte pair merges as a SentencePiece model, which can be applied inside a graph."""

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise

from keras_attn.validation import require

_UNKNOWN = "<unknown>"  # SentencePiece wants a piece for it, which gets the last id
NO_REPLACEMENTS = struct.pack("<I", 1024) + bytes(1024 + 1)
"""A table of no replacements: without any, SentencePiece prints a message."""
_NEEDED = "The vocabulary must contain the parts and the result of each merge."
_AS_TRAINED = "Merges must be in the order of training: each token is made by earlier merges."


def merge_model(
    tokens: Sequence[str], merges: Sequence[tuple[str, str]], characters: Sequence[str]
) -> bytes:
    """Makes the model: each token has its id, the earliest merge the highest score.

    Args:
        tokens: The vocabulary, by id.
        merges: Pairs of tokens, the earliest first; see `check_merges`.
        characters: All characters of the texts; tokens of the vocabulary.

    Returns:
        The serialized model.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.vocab_size = len(tokens) + 1
    proto.trainer_spec.unk_id = len(tokens)
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.precompiled_charsmap = NO_REPLACEMENTS
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.escape_whitespaces = False
    ranks = {first + second: rank for rank, (first, second) in enumerate(merges)}
    ranks |= dict.fromkeys(characters, 0)
    kinds = proto.SentencePiece
    for token in tokens:
        kind = kinds.NORMAL if token in ranks else kinds.CONTROL
        proto.pieces.add(piece=token, score=-ranks.get(token, 0), type=kind)
    proto.pieces.add(piece=unused_name(tokens), type=kinds.UNKNOWN)
    return proto.SerializeToString()


def unused_name(tokens: Sequence[str]) -> str:
    """Returns a name for the piece of unknown texts that is no token."""
    taken = set(tokens)
    return next(name for n in range(len(tokens) + 1) if (name := _UNKNOWN + "_" * n) not in taken)


def check_merges(
    tokens: Sequence[str], merges: Sequence[tuple[str, str]], characters: Sequence[str]
) -> None:
    """Raises unless merging by tokens, as SentencePiece does, is the same as merging by pairs.

    It is the same if parts are made before they are merged, and the last merge that makes a token
    from its own characters is the one listed for it. Proof: consider two neighbors that spell a
    token after all merges before its own. None of these merges has crossed their outer ends, so
    they are the state of the token's characters before its last merge, which is the listed pair.

    Args:
        tokens: The vocabulary, by id.
        merges: Pairs of tokens, the earliest first.
        characters: All characters of the texts.

    Raises:
        UserError: A character, a part or the result of a merge is missing, a merge or its result
            appears twice, or a token is not what the merges make of its characters.
    """
    known = set(tokens)
    for character in characters:
        require(character in known, "The vocabulary must contain all bytes.", missing=character)
    ranks: dict[tuple[str, str], int] = {}
    made = set(characters)
    for rank, pair in enumerate(merges):
        result = "".join(pair)
        for token in (*pair, result):
            require(token in known, _NEEDED, merge=pair, lacks=token)
        require(result not in made, "Merges must not make a token twice.", merge=pair)
        require(made.issuperset(pair), _AS_TRAINED, merge=pair)
        made.add(result)
        ranks[pair] = rank
    for rank, pair in enumerate(merges):
        require(_last_merge("".join(pair), ranks) == rank, _AS_TRAINED, merge=pair)


def _last_merge(token: str, ranks: Mapping[tuple[str, str], int]) -> int | None:
    """The rank of the merge that makes the token of its characters, None if merging ends before."""
    parts = list(token)
    none = len(ranks)
    rank = None
    while len(parts) > 1:
        options = [ranks.get(pair, none) for pair in pairwise(parts)]
        rank = min(options)
        if rank == none:
            return None
        place = options.index(rank)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return rank

"""Ids that `transformers` gave; make_transformers_ids.py writes the file."""

import json
from pathlib import Path

GOLDEN = json.loads(Path(__file__).with_name("transformers_ids.json").read_text("ascii"))


KINDS = {
    "characters": {},
    "symbols": {},
    "sentencepiece": {"vocabulary_size": 31},
    "word_piece": {"vocabulary_size": 47},
    "byte_level_bpe": {"vocabulary_size": 281},
}
"""Options of training by the kind of tokenizer."""


def differing(tokenizer, expected):
    """The texts whose ids are not the expected ones."""
    received = tokenizer.tokenize(GOLDEN["texts"]).to_list()
    return [
        (text, ids, judged)
        for text, ids, judged in zip(GOLDEN["texts"], received, expected, strict=True)
        if ids != judged
    ]


def pages(between, times=1):
    """All code points in texts of 256, each so many times, with text before it."""
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return [
        "".join(between + chr(code) * times for code in codes[first : first + 256])
        for first in range(0, len(codes), 256)
    ]


def decoded(strings):
    return [string.decode() for string in strings.numpy()]

"""Corrupted texts and their targets: the paper's example, a plain loop, and the text put together
again."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import SpanCorruption, SpanNoise
from keras_attn.tokenizers import SentencePieceTokenizer, sentinel_ids, train_tokenizer
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

PAPER = "Thank you for inviting me to your party last week"
SENTINELS = 40


@pytest.fixture(scope="module")
def tokenizer():
    """Whole words as pieces."""
    return SentencePieceTokenizer.train([PAPER] * 9, 92, sentinels=SENTINELS)


@pytest.fixture(scope="module")
def corruption(tokenizer):
    return SpanCorruption(tokenizer)


def by_loop(ids, is_noise, sentinels):
    """As section 3.1.4 tells it."""
    source, target, number = [], [], 0
    for place, token in enumerate(ids):
        if not is_noise[place]:
            source.append(token)
            continue
        if place == 0 or not is_noise[place - 1]:
            source.append(sentinels[number])
            target.append(sentinels[number])
            number += 1
        target.append(token)
    return source, [*target, sentinels[number]]


def put_together(source, target, sentinels):
    """The text of which a source and a target were made."""
    places = [place for place, token in enumerate(target) if token in sentinels]
    assert [target[place] for place in places] == sentinels[: len(places)]
    assert places[0] == 0
    assert places[-1] == len(target) - 1
    text, spans = [], 0
    for token in source:
        if token in sentinels:
            assert token == sentinels[spans]
            text += target[places[spans] + 1 : places[spans + 1]]
            spans += 1
        else:
            text.append(token)
    assert spans == len(places) - 1
    return text


def test_figure_2_of_the_paper(tokenizer, corruption):
    words = PAPER.split()
    ids = tokenizer.tokenize(tf.constant([PAPER])).to_list()[0]
    pieces = [tokenizer.id_to_token(number) for number in ids]
    # The word that each piece belongs to.
    words_of_pieces = np.cumsum([piece.startswith("▁") for piece in pieces]) - 1
    dropped = [words.index(word) for word in ("for", "inviting", "last")]
    is_noise = np.isin(words_of_pieces, dropped)
    source, target = corruption.corrupted(np.array(ids, "int32"), is_noise)
    texts = tokenizer.detokenize(tf.ragged.constant([source.tolist(), target.tolist()])).numpy()
    x, y, z = (f"<extra_id_{number}>" for number in range(3))
    found = [
        " ".join(text.decode().replace("<", " <").replace(">", "> ").split()) for text in texts
    ]
    assert found == [f"Thank you {x} me to your party {y} week", f"{x} for inviting {y} last {z}"]
    # What is shown is read again as it was.
    assert tokenizer.tokenize(texts).to_list() == [source.tolist(), target.tolist()]


@pytest.mark.parametrize("noise", [(0.15, 3.0), (0.5, 1.0), (0.3, 8.0), (0.9, 2.0)])
def test_many_texts_by_a_loop_and_put_together(noise, tokenizer):
    corruption = SpanCorruption(tokenizer, SpanNoise(*noise))
    sentinels = sentinel_ids(tokenizer).tolist()
    generator = np.random.default_rng(5)
    ends = set()
    for number in range(150):
        length = number % 70 + 1
        ids = generator.integers(3, 92 - SENTINELS, length).astype("int32")
        mask = corruption.noise.mask(length, np.random.default_rng([number, 7]))
        source, target = corruption.drawn(ids, [number, 7])
        assert (source.dtype, target.dtype) == (np.dtype("int32"), np.dtype("int32"))
        expected = by_loop(ids.tolist(), mask.tolist(), sentinels)
        assert (source.tolist(), target.tolist()) == expected
        assert put_together(*expected, sentinels) == ids.tolist()
        # The lengths are known before; end ids are counted.
        found = [len(source) + 1, len(target) + 1]
        assert found == [int(side) for side in corruption.lengths(length)]
        ends.add((bool(mask[0]), bool(mask[-1])))
    assert len(ends) > 2


def test_the_shortest_texts(corruption):
    first, second, third = sentinel_ids(corruption.tokenizer)[:3].tolist()
    one = corruption.drawn(np.array([7], "int32"), [1])
    assert [side.tolist() for side in one] == [[7], [first]]
    ways = {2: set(), 3: set()}
    for length, found in ways.items():
        for seed in range(40):
            sides = corruption.drawn(np.array([7, 8, 9][:length], "int32"), [seed])
            found.add(tuple(tuple(side.tolist()) for side in sides))
    assert ways[2] == {((first, 8), (first, 7, second)), ((7, first), (first, 8, second))}
    assert ways[3] == {
        ((first, 8, 9), (first, 7, second)),
        ((7, first, 9), (first, 8, second)),
        ((7, 8, first), (first, 9, second)),
    }
    assert third not in {token for one in ways[3] for side in one for token in side}


def test_the_same_seed_drops_the_same(corruption):
    ids = np.arange(5, 45, dtype="int32")
    first, again, other = (corruption.drawn(ids, seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert first[0].tolist() == again[0].tolist()
    assert first[1].tolist() == again[1].tolist() != other[1].tolist()
    assert ids.tolist() == list(range(5, 45))  # what is given stays as it is


def test_corrupted_texts_fill_the_length(tokenizer, corruption):
    # 483 kept tokens, 28 sentinels and the end; 85 dropped ones, 29 sentinels and the end. The
    # authors' lengths are 568 and 114, without a sentinel at the end.
    assert corruption.longest_text(512) == 568
    assert [int(side) for side in corruption.lengths(568)] == [512, 115]
    for limit in range(2, 90):
        longest = corruption.longest_text(limit)
        assert int(corruption.lengths(longest)[0]) == limit
        assert int(corruption.lengths(longest + 1)[0]) == limit + 1 or longest == 1
    for noise in ((0.15, 3.0), (0.9, 1.0), (0.5, 4.0)):
        other = SpanCorruption(tokenizer, SpanNoise(*noise))
        for limits in ((2, None), (9, 4), (30, 9), (12, 90)):
            longest = other.longest_text(*limits)
            fits = [
                int(source) <= limits[0] and int(target) <= (limits[1] or 1e9)
                for source, target in map(other.lengths, range(1, 400))
            ]
            assert fits == [length <= longest for length in range(1, 400)]


def test_mistakes(tokenizer, corruption):
    with pytest.raises(UserError, match="tokenizer with sentinels.* Received: tokenizer='char"):
        SpanCorruption(train_tokenizer("characters", ["ab"]))
    (model,) = tokenizer.assets().values()
    with pytest.raises(UserError, match=r"recognize .* sentinel='<extra_id_0>', ids=\[\d+, 91\]"):
        SpanCorruption(SentencePieceTokenizer(model))
    refused("max_source_length=1, max_target_length=None", corruption.longest_text, 1)
    refused("max_source_length=9, max_target_length=1", corruption.longest_text, 9, 1)
    corruption.check_sentinels(789)  # 118 tokens in 39 spans
    refused("Received: tokens=810, needed=42, sentinels=40", corruption.check_sentinels, 810)

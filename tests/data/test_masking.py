"""What is hidden of texts: how much, what for, whole words, and the same for the same seed."""

import itertools

import numpy as np
import pytest

from keras_attn.data import Masking
from keras_attn.tokenizers import WordPieceTokenizer, train_tokenizer
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MASK = 4
A, B, MORE_A, MORE_B, C = range(5, 10)


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer([*SPECIAL, "a", "b", "##a", "##b", "c"])


def draws(masking, count, length, seed=1):
    """Texts of random ordinary tokens, and what is drawn of each."""
    texts = np.random.default_rng(seed).integers(A, C + 1, (count, length)).astype("int32")
    return texts, [masking.drawn(ids, [seed, number]) for number, ids in enumerate(texts)]


def test_shares_of_what_is_hidden(tokenizer):
    texts, drawn = draws(Masking(tokenizer), count=400, length=100)
    fates = {"masked": 0, "kept": 0, "another": 0}
    places = np.zeros(100)
    for ids, (masked, chosen, labels) in zip(texts, drawn, strict=True):
        assert len(set(chosen.tolist())) == len(chosen) == 15
        assert (np.diff(chosen) > 0).all()
        np.testing.assert_array_equal(labels, ids[chosen])
        rest = np.delete(np.arange(100), chosen)
        np.testing.assert_array_equal(masked[rest], ids[rest])
        shown = masked[chosen]
        assert set(shown.tolist()) <= {MASK, A, B, MORE_A, MORE_B, C}
        fates["masked"] += (shown == MASK).sum()
        fates["kept"] += (shown == labels).sum()
        fates["another"] += ((shown != MASK) & (shown != labels)).sum()
        places[chosen] += 1
    # Of 6,000; one random token in five is the one that was there.
    assert fates["masked"] == pytest.approx(4_800, abs=4 * np.sqrt(6_000 * 0.8 * 0.2))
    assert fates["kept"] == pytest.approx(720, abs=4 * np.sqrt(6_000 * 0.12 * 0.88))
    assert fates["another"] == pytest.approx(480, abs=4 * np.sqrt(6_000 * 0.08 * 0.92))
    assert places == pytest.approx(60, abs=5 * np.sqrt(400 * 0.15 * 0.85))


def test_special_tokens_are_never_chosen(tokenizer):
    ids = np.array([2, A, 1, 1, MASK, B, 3], "int32")
    found = {int(place) for seed in range(50) for place in Masking(tokenizer).drawn(ids, [seed])[1]}
    assert found == {1, 5}
    masked, chosen, labels = Masking(tokenizer).drawn(np.array([2, 1, 3], "int32"), [1])
    assert (masked.tolist(), chosen.tolist(), labels.tolist()) == ([2, 1, 3], [], [])


@pytest.mark.parametrize(("length", "count"), [(1, 1), (3, 1), (10, 2), (20, 3), (100, 15)])
def test_how_many_of_a_text(tokenizer, length, count):
    masking = Masking(tokenizer)
    assert masking.most(length) == count
    assert len(masking.drawn(np.full(length, A, "int32"), [1])[1]) == count


def test_the_same_seed_draws_the_same(tokenizer):
    masking = Masking(tokenizer)
    ids = np.full(40, C, "int32")
    first, again, other = (masking.drawn(ids, seed) for seed in ([1, 2, 3], [1, 2, 3], [1, 2, 4]))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert first[1].tolist() != other[1].tolist()
    assert (ids == C).all()  # what is given stays as it is


def test_whole_words(tokenizer):
    words = [[A, MORE_B], [C], [B, MORE_A, MORE_A], [A], [B], [A, MORE_A], [C], [B], [C], [A]]
    ids = np.array([2, *itertools.chain(*words), 1, MORE_B, *[C] * 5, 3], "int32")
    ends = np.cumsum([1, *map(len, words)])
    spans = [set(range(begin, end)) for begin, end in itertools.pairwise(ends)]
    # A piece after an unknown word belongs to no word that is known.
    spans += [{place} for place in range(16, 22)]
    assert ids[16] == MORE_B
    seen, counts = set(), set()
    for seed in range(200):
        chosen = set(Masking(tokenizer, whole_words=True).drawn(ids, [seed])[1].tolist())
        counts.add(len(chosen))
        for number, span in enumerate(spans):
            assert not chosen & span or span <= chosen
            seen |= {number} if span <= chosen else set()
        assert chosen <= set().union(*spans)
    assert seen == set(range(len(spans)))
    assert counts == {3}  # 15% of 20; a word that is too long makes room for others


def test_a_word_that_is_too_long_is_not_chosen(tokenizer):
    ids = np.array([2, A, MORE_A, MORE_A, 3], "int32")
    assert len(Masking(tokenizer, whole_words=True).drawn(ids, [1])[1]) == 0
    assert len(Masking(tokenizer).drawn(ids, [1])[1]) == 1


def test_tokenizers_without_gaps(tokenizer):
    characters = train_tokenizer("characters", ["ab"])
    refused("a mask token: .*`with_mask`. Received: tokenizer='char", Masking, characters)
    characters = train_tokenizer("characters", ["ab"], with_mask=True)
    message = "kind word_piece. Received: whole_words=True, tokenizer='char"
    refused(message, Masking, characters, whole_words=True)
    split = WordPieceTokenizer(tokenizer.vocabulary, split_special_tokens=True)
    refused("recognize .* Received: split_special_tokens=True", Masking, split)

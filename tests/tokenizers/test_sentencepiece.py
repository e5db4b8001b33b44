"""The `sentencepiece` library itself is the judge of ids and text."""

import io
import random
from functools import partial

import pytest
import sentencepiece
import tensorflow as tf

from keras_attn.tokenizers import SentencePieceTokenizer
from keras_attn.validation import UserError
from tests.refusals import refusals, refused
from tests.tokenizers.golden import decoded

MODEL = "sentencepiece.model"
TYPES = ["bpe", "unigram"]


def corpus(sentences=211, seed=7):
    generator = random.Random(seed)
    syllables = ["ka", "ro", "mi", "st", "en", "ü", "lo", "ta", "ß", "né"]
    words = ["".join(generator.choices(syllables, k=generator.randint(1, 4))) for _ in range(97)]
    return [" ".join(generator.choices(words, k=generator.randint(1, 9))) for _ in range(sentences)]


@pytest.fixture(scope="module", params=TYPES)
def tokenizer(request):
    return SentencePieceTokenizer.train(corpus(), vocabulary_size=71, model_type=request.param)


def test_like_the_library(tokenizer):
    judge = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.assets()[MODEL])
    texts = [*corpus(sentences=53, seed=13), "", "  two   spaces ", "naïve 中 \U0001f600 ka"]
    ids = tokenizer.tokenize(texts)
    assert ids.to_list() == judge.encode(texts)
    assert decoded(tokenizer.detokenize(ids.to_tensor())) == judge.decode(judge.encode(texts))
    assert tokenizer.vocabulary == [judge.id_to_piece(k) for k in range(71)]
    assert (judge.pad_id(), judge.bos_id(), judge.eos_id(), judge.unk_id()) == (0, 1, 2, 3)


def test_covered_text_comes_back(tokenizer):
    texts = corpus()
    ids = tokenizer.tokenize(texts)
    assert 3 not in ids.values.numpy()
    assert decoded(tokenizer.detokenize(ids)) == texts
    characters = sum(len(text) for text in texts)
    assert ids.values.shape[0] < 0.8 * characters  # pieces, not characters


def test_unknown_characters_are_written_as_such(tokenizer):
    ids = tokenizer.tokenize(["ka 中 ro"])
    assert decoded(tokenizer.detokenize(ids)) == ["ka <unk> ro"]


def test_text_spelled_like_special_tokens_is_text(tokenizer):
    ids = tokenizer.tokenize(["</s> <pad> <s> ka"]).to_list()[0]
    assert not {0, 1, 2} & set(ids)


@pytest.mark.parametrize("model_type", TYPES)
def test_training_is_deterministic_and_quiet(model_type, capfd):
    first, second = (SentencePieceTokenizer.train(corpus(), 71, model_type) for _ in range(2))
    assert first.assets() == second.assets()
    assert capfd.readouterr() == ("", "")


def test_the_two_model_types_differ():
    bpe, unigram = (SentencePieceTokenizer.train(corpus(), 71, kind) for kind in TYPES)
    assert bpe.vocabulary != unigram.vocabulary


@pytest.mark.parametrize("model_type", TYPES)
def test_pieces_of_several_words(model_type):
    texts = [f"{word} waste of time" for word in ("a", "one", "what a", "no")] * 25
    text = "what a waste of time"
    for split, has_phrases in ((True, False), (False, True)):
        options = {"vocabulary_size": 60, "model_type": model_type, "split_by_whitespace": split}
        tokenizer = SentencePieceTokenizer.train(texts, **options)
        judge = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.assets()[MODEL])
        ids = tokenizer.tokenize([text])
        assert ids.to_list() == [judge.encode(text)]
        assert decoded(tokenizer.detokenize(ids.to_tensor())) == [text]
        phrases = [piece for piece in tokenizer.vocabulary if "\u2581" in piece.strip("\u2581")]
        assert bool(phrases) == has_phrases


@pytest.mark.parametrize("model_type", TYPES)
def test_small_texts_give_the_pieces_that_they_have(model_type):
    texts = corpus(sentences=29)
    most = SentencePieceTokenizer.train(texts, 5003, model_type)
    assert 50 < most.vocabulary_size < 5003
    exact = SentencePieceTokenizer.train(texts, most.vocabulary_size, model_type)
    assert exact.vocabulary == most.vocabulary
    fewer = SentencePieceTokenizer.train(texts, most.vocabulary_size - 1, model_type)
    assert fewer.vocabulary_size == most.vocabulary_size - 1


def test_too_small_a_vocabulary_names_the_smallest():
    # Special tokens, a, b, c and the mark of a word's beginning.
    train, message = (
        SentencePieceTokenizer.train,
        r"at least 8 for these texts .*vocabulary_size=7\.",
    )
    refused(message, train, ["abc ab abc"], vocabulary_size=7)
    assert SentencePieceTokenizer.train(["abc ab abc"], vocabulary_size=8).vocabulary_size == 8
    refused(r"at least 5\. Received: vocabulary_size=4\.", train, ["abc"], vocabulary_size=4)


def test_byte_fallback_spells_any_character():
    tokenizer = SentencePieceTokenizer.train(corpus(), vocabulary_size=331, byte_fallback=True)
    texts = ["ka 中 \U0001f600 ro"]
    ids = tokenizer.tokenize(texts)
    assert 3 not in ids.values.numpy()
    assert decoded(tokenizer.detokenize(ids)) == texts


def test_character_coverage_leaves_rare_characters_out():
    texts = ["abab " * 50, "z"]
    full = SentencePieceTokenizer.train(texts, vocabulary_size=9)
    assert 3 not in full.tokenize(["z"]).to_list()[0]
    covered = SentencePieceTokenizer.train(texts, vocabulary_size=9, character_coverage=0.98)
    assert 3 in covered.tokenize(["z"]).to_list()[0]


def test_of_many_texts_some_are_drawn_always_the_same():
    # Each text has a character of its own, which tells whether it was drawn.
    texts = [f"ka ro mi {chr(0x4E00 + number)}" for number in range(100)]

    def drawn():
        trained = SentencePieceTokenizer.train(texts, vocabulary_size=30, input_sentence_size=10)
        return [text for text in texts if trained.unknown_id not in trained.tokenize([text])[0]]

    assert len(drawn()) == 10
    assert drawn() == drawn() != texts[:10]


def test_long_lines_are_trained_on():
    # By itself the library leaves out lines of more than 4,192 bytes.
    tokenizer = SentencePieceTokenizer.train(["qux " * 3001, "ab ab"], vocabulary_size=13)
    assert 3 not in tokenizer.tokenize(["qux"]).to_list()[0]


def test_the_model_can_be_made_twice_and_dropped():
    model = SentencePieceTokenizer.train(corpus(), vocabulary_size=71).assets()[MODEL]
    first, second = SentencePieceTokenizer(model), SentencePieceTokenizer(model)
    del first
    assert decoded(second.detokenize(second.tokenize(["karo"]))) == ["karo"]


test_wrong_options = refusals(
    partial(SentencePieceTokenizer.train, corpus()),
    ({"model_type": "word"}, "`model_type` must be one of 'bpe', 'unigram'.*'word'"),
    ({"vocabulary_size": 0}, "`vocabulary_size` must be a positive.*vocabulary_size=0"),
    ({"character_coverage": 1.5}, r"number in \(0, 1\].*character_coverage=1.5"),
    ({"character_coverage": 0}, r"number in \(0, 1\].*character_coverage=0"),
)


@pytest.mark.parametrize("model", [b"", b"garbage that is no model"])
def test_bytes_that_are_no_model(model):
    refused(f"SentencePiece model. Received: {len(model)} bytes", SentencePieceTokenizer, model)
    refused(r"`model` must be the bytes.*'str'", SentencePieceTokenizer, "a path")


def test_a_model_with_other_special_ids_is_refused():
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=buffer, vocab_size=71, minloglevel=2
    )
    with pytest.raises(UserError, match=r"begin with the special tokens <pad>.*'<unk>', '<s>'"):
        SentencePieceTokenizer(buffer.getvalue())


def test_malformed_bytes_between_good_ones(tokenizer):
    judge = tokenizer.tokenize(["ka ro"]).to_list()[0]
    ids = tokenizer.tokenize(tf.constant([b"ka ro", b"\xff\xfe", b"ka ro"])).to_list()
    assert [ids[0], ids[2]] == [judge, judge]
    assert 3 in ids[1]


def test_special_tokens_stand_for_themselves(tokenizer):
    (model,) = tokenizer.assets().values()
    special = SentencePieceTokenizer(model, special_tokens=["</s>", "<s>"])
    judge = sentencepiece.SentencePieceProcessor(model_proto=model)
    texts = ["ka ro</s> mi", "</s><s>", "<s> ka", "ka  ", ""]
    expected = [
        [*judge.encode("ka ro"), 2, *judge.encode("mi")],
        [2, 1],
        [1, *judge.encode("ka")],
        judge.encode("ka"),
        [],
    ]
    assert special.tokenize(texts).to_list() == expected
    again = SentencePieceTokenizer.from_config(special.get_config(), special.assets())
    assert again.tokenize(texts).to_list() == expected
    assert tokenizer.get_config()["special_tokens"] == []
    with pytest.raises(UserError, match=r"must be pieces of the model. .* missing=\['<x>'\]"):
        SentencePieceTokenizer(model, special_tokens=["<s>", "<x>"])

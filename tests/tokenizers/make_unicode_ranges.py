"""Writes keras_attn/tokenizers/unicode_ranges.json, asked of the `tokenizers` library itself.

Its parts follow different versions of Unicode, so that no `unicodedata` has its classes. Needs the
`tokenizers` library, TensorFlow, whose normal forms are compared with that library's, and Python
3.11, whose Unicode is the oldest among the supported Pythons:

    python tests/tokenizers/make_unicode_ranges.py
"""

import io
import json
import tempfile
import unicodedata
from pathlib import Path

import sentencepiece
import tensorflow_text as tf_text
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

FILE = Path(__file__).parents[2] / "keras_attn" / "tokenizers" / "unicode_ranges.json"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CLASSES = (
    *(r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{Mn}", r"\p{Mc}"),
    *(r"\p{Nd}", r"\p{Nl}", r"\p{No}", r"\p{P}", r"\p{S}", r"\p{Z}", r"\w"),
    *(r"\p{Han}", r"\p{Hiragana}", r"\p{Katakana}", r"\p{Hangul}", r"\p{Thai}"),
)
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def ranges(codes):
    found = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return " ".join(f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in found)


def matching(pattern):
    """Code points between two private ones that the pattern cuts out."""
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return [code for code in CODES if len(split.pre_tokenize_str(f"\ue000{chr(code)}\ue000")) == 3]


def normalizer_of(rules):
    """The `Precompiled` normalizer of some replacements, as SentencePiece compiles them."""

    def numbers(text):
        return " ".join(f"{ord(character):X}" for character in text)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.tsv"
        lines = [f"{numbers(text)}\t{numbers(result)}\n" for text, result in rules.items()]
        path.write_text("".join(lines), encoding="ascii")
        buffer = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["abcdefgh"] * 9),
            model_writer=buffer,
            vocab_size=12,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(path),
            minloglevel=2,
        )
    spec = ModelProto.FromString(buffer.getvalue()).normalizer_spec
    return normalizers.Precompiled(spec.precompiled_charsmap)


def grapheme_classes():
    """What belongs to the character before it, what nothing belongs to, and what begins one.

    A grapheme is replaced as a whole if a rule fits its beginning; only those of less than six
    bytes, so that emoji, flags and syllables of Hangul do not matter.
    """
    mark = "\u0301"
    begins = normalizer_of({"a": "X"})
    joined = [code for code in CODES[1:] if begins.normalize_str("a" + chr(code)) == "X"]
    kinds = {code: unicodedata.category(chr(code)) for code in CODES[1:]}
    candidates = [code for code, kind in kinds.items() if kind in ("Cc", "Cf", "Zl", "Zp")]
    single = normalizer_of({chr(code): "X" for code in candidates})
    controls = [code for code in candidates if single.normalize_str(chr(code) + mark) != "X"]
    pair = normalizer_of({"a" + mark: "X"})
    prefixes = [
        code for code in range(0x80, 0x800) if "X" not in pair.normalize_str(f"{chr(code)}a{mark}")
    ]
    return {"joined": ranges(joined), "controls": ranges(controls), "prefixes": ranges(prefixes)}


def words():
    """What a token with `single_word` may not follow."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.add_tokens([AddedToken("\ue000", single_word=True)])
    found = tokenizer.encode_batch([chr(code) + "\ue000" for code in CODES])
    return [code for code, one in zip(CODES, found, strict=True) if len(one.ids) == 1 and code]


def later(form):
    """What TensorFlow's normal form changes and the library's does not, or differently."""
    judge = getattr(normalizers, form)()
    found = tf_text.normalize_utf8([chr(code) for code in CODES], form).numpy()
    codes = set()
    for code, ours in zip(CODES, found, strict=True):
        if ours.decode() != judge.normalize_str(chr(code)):
            codes.add(code)
    # Where a pair becomes one character in TensorFlow alone, its first half.
    parts = [(code, unicodedata.normalize("NFD", chr(code))) for code in CODES]
    pairs = [text for _, text in parts if len(text) == 2]
    pairs += [text.decode() for text in tf_text.normalize_utf8(map_of_later(), "NFD").numpy()]
    for text, ours in zip(pairs, tf_text.normalize_utf8(pairs, form).numpy(), strict=True):
        if ours.decode() != judge.normalize_str(text):
            codes.add(ord(text[0]))
    return ranges(codes)


def map_of_later():
    judge = normalizers.NFD()
    found = tf_text.normalize_utf8([chr(code) for code in CODES], "NFD").numpy()
    return [
        chr(code)
        for code, ours in zip(CODES, found, strict=True)
        if ours.decode() != judge.normalize_str(chr(code))
    ]


def main():
    cased = normalizers.BertNormalizer(lowercase=False)
    stripped = normalizers.BertNormalizer(lowercase=False, strip_accents=True)
    lower = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    split = pre_tokenizers.BertPreTokenizer()
    dropped = [code for code in CODES if not cased.normalize_str(chr(code))]
    contents = {
        "letters": ranges(matching(r"\p{L}")),
        "numbers": ranges(matching(r"\p{N}")),
        "spaces": ranges(matching(r"\s")),
        "punctuation": ranges(
            code for code in CODES if len(split.pre_tokenize_str(f"a{chr(code)}a")) == 3
        ),
        "dropped": ranges(dropped),
        "marks": ranges(
            code
            for code in CODES
            if not stripped.normalize_str(chr(code)) and cased.normalize_str(chr(code))
        ),
        "chinese": ranges(
            code for code in CODES if cased.normalize_str(chr(code)) == f" {chr(code)} "
        ),
        "undecomposed": ranges(
            code
            for code in CODES
            if unicodedata.decomposition(chr(code))
            and stripped.normalize_str(chr(code)) == chr(code)
            and unicodedata.normalize("NFD", chr(code)) != chr(code)
        ),
        "lower": {
            f"{code:X}": f"{ord(lower.normalize_str(chr(code))):X}"
            for code in CODES
            if unicodedata.category(chr(code)) == "Cn"
            and lower.normalize_str(chr(code)).strip() != chr(code)
        },
    }
    accents, digits = normalizers.StripAccents(), pre_tokenizers.Digits()
    contents |= {name: ranges(matching(name)) for name in CLASSES}
    contents |= {
        "accents": ranges(code for code in CODES if not accents.normalize_str(chr(code))),
        "digits": ranges(
            code for code in CODES if len(digits.pre_tokenize_str(f"a{chr(code)}a")) == 3
        ),
        "words": ranges(words()),
        **grapheme_classes(),
        "later": {form: later(form) for form in FORMS},
    }
    FILE.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

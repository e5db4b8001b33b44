"""Writes what BERT's masked language model of `transformers` computes, for test_masked_bert.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_masked_bert_golden.py

Every parameter is drawn at random; no two sizes are equal. The folder `golden/masked_bert` is a
checkpoint as `save_pretrained` writes it, `golden/masked_bert_outputs.npz` what the model makes of
ids and of texts with gaps.
"""

import shutil

import numpy as np
import torch
import transformers
from make_bert_golden import GOLDEN, WORDS

TEXTS = ["The [MASK] sat on the mat.", "[MASK] [MASK] dog, [MASK]!", "a cat"]


def main():
    folder = GOLDEN / "masked_bert"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=27,  # more than the vocabulary has, as padded embeddings do
        hidden_size=14,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=19,
        max_position_embeddings=15,
        type_vocab_size=3,
        hidden_act="silu",
        layer_norm_eps=1e-2,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            parameter.copy_(centre + 0.5 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)

    rng = np.random.default_rng(1)
    real = np.arange(11) < np.array([[11], [6], [1]])
    token_ids = rng.integers(1, 27, (3, 11)) * real
    texts = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        given = model(
            input_ids=torch.tensor(token_ids), attention_mask=torch.tensor(real.astype("int64"))
        )
        of_texts = model(**texts)
    np.savez_compressed(
        GOLDEN / "masked_bert_outputs.npz",
        torch=torch.__version__,
        transformers=transformers.__version__,
        token_ids=token_ids.astype("int32"),
        logits=given.logits.numpy(),
        text_ids=texts["input_ids"].numpy().astype("int32"),
        text_logits=of_texts.logits.numpy(),
    )


if __name__ == "__main__":
    main()

"""Writes what BERT of `transformers` computes, for tests/convert/encoders/test_bert.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_bert_golden.py

Every parameter is drawn at random; no two sizes are equal. The folder `golden/bert` is a checkpoint
as `save_pretrained` writes it, `golden/bert_outputs.npz` what the model makes of texts and of ids.
"""

import numpy as np
import torch
import transformers
from golden_files import draw_parameters, empty_folder, write_outputs

VOCABULARY = (
    "[PAD] the cat sat ##s on [UNK] [CLS] [SEP] mat . , a ##t c [MASK] über uber ! dog 日 本"
)
WORDS = VOCABULARY.split()
TEXTS = [
    "The cats sat on the mat.",
    "",
    "ÜBER, a cat! Cats cats cat a dog sat on the cat, the dog sat.",
    "日本 fox [MASK] a",
]


def made(name, architecture, seed=0, **sizes):
    """Writes a checkpoint; returns its model and tokenizer."""
    folder = empty_folder(name)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    config = transformers.BertConfig(attn_implementation="eager", **sizes)
    torch.manual_seed(seed)
    model = architecture(config).eval()
    draw_parameters(model, 0.5, r"LayerNorm\.weight$")
    model.save_pretrained(folder)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def logits_of(model, texts):
    """What a model of 27 tokens makes of random ids and of texts."""
    rng = np.random.default_rng(1)
    real = np.arange(11) < np.array([[11], [6], [1]])
    token_ids = rng.integers(1, 27, (3, 11)) * real
    with torch.no_grad():
        given = model(
            input_ids=torch.tensor(token_ids), attention_mask=torch.tensor(real.astype("int64"))
        )
        of_texts = model(**texts)
    return {
        "token_ids": token_ids.astype("int32"),
        "logits": given.logits.numpy(),
        "text_ids": texts["input_ids"].numpy().astype("int32"),
        "text_logits": of_texts.logits.numpy(),
    }


def main():
    model, tokenizer = made(
        "bert",
        transformers.BertModel,
        vocab_size=29,  # more than the vocabulary has, as padded embeddings do
        hidden_size=21,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=37,
        max_position_embeddings=17,
        type_vocab_size=5,
        layer_norm_eps=1e-3,
    )
    rng = np.random.default_rng(1)
    token_ids = rng.integers(1, 29, (4, 13))
    segment_ids = rng.integers(0, 5, (4, 13))
    real = np.arange(13) < np.array([[13], [7], [1], [10]])
    token_ids, segment_ids = token_ids * real, segment_ids * real
    texts = tokenizer(TEXTS, padding=True, truncation=True, max_length=17, return_tensors="pt")
    with torch.no_grad():
        given = model(
            input_ids=torch.tensor(token_ids),
            token_type_ids=torch.tensor(segment_ids),
            attention_mask=torch.tensor(real.astype("int64")),
        )
        vectors = model(**texts)
    mask = texts["attention_mask"][..., None].float()
    mean = (vectors.last_hidden_state * mask).sum(1) / mask.sum(1)
    write_outputs(
        "bert",
        token_ids=token_ids.astype("int32"),
        segment_ids=segment_ids.astype("int32"),
        hidden=given.last_hidden_state.numpy(),
        pooled=given.pooler_output.numpy(),
        text_ids=texts["input_ids"].numpy().astype("int32"),
        mean=mean.numpy(),
        normalized=torch.nn.functional.normalize(mean, dim=1).numpy(),
        first=vectors.last_hidden_state[:, 0].numpy(),
    )


if __name__ == "__main__":
    main()

"""Writes what BERT's masked language model of `transformers` computes, for test_masked_bert.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_masked_bert_golden.py

Every parameter is drawn at random; no two sizes are equal. The folder `golden/masked_bert` is a
checkpoint as `save_pretrained` writes it, `golden/masked_bert_outputs.npz` what the model makes of
ids and of texts with gaps.
"""

import transformers
from golden_files import write_outputs
from make_bert_golden import logits_of, made

TEXTS = ["The [MASK] sat on the mat.", "[MASK] [MASK] dog, [MASK]!", "a cat"]


def main():
    model, tokenizer = made(
        "masked_bert",
        transformers.BertForMaskedLM,
        vocab_size=27,  # more than the vocabulary has, as padded embeddings do
        hidden_size=14,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=19,
        max_position_embeddings=15,
        type_vocab_size=3,
        hidden_act="silu",
        layer_norm_eps=1e-2,
    )
    texts = tokenizer(TEXTS, padding=True, return_tensors="pt")
    write_outputs("masked_bert", **logits_of(model, texts))


if __name__ == "__main__":
    main()

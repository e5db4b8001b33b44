"""Writes what Longformer of `transformers` makes of texts, for encoders/test_longformer.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_longformer_golden.py

Every parameter is drawn at random; no two sizes are equal. The folders `golden/longformer` and
`golden/longformer_classifier` are checkpoints as `save_pretrained` writes them, with a vocabulary
trained on sentences of our own, and `golden/longformer_outputs.npz` and
`golden/longformer_classifier_outputs.npz` what the models make of texts, each alone.
"""

import json

import numpy as np
import torch
import transformers
from golden_files import draw_parameters, empty_folder, write_outputs
from tokenizers import ByteLevelBPETokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
MASK = "<mask>"
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "We're sure they've seen it; she'll say I'm late, he'd say 1234 or 56.",
    "Die Straße ist naß, über allen Gipfeln ist Ruh' — café, naïve.",
]
TEXTS = [*SENTENCES, "", "  two  spaces\tand a tab\n", "日本語 👍🏽 \u200b", "a</s> b", "The dog"]
SIZES = {
    "vocab_size": 331,  # more than the vocabulary has, as padded embeddings do
    "hidden_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 17,
    "max_position_embeddings": 43,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-3,
    "attention_window": [8, 4],
}


def made(name, architecture, **sizes):
    folder = empty_folder(name)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        SENTENCES * 3, vocab_size=317, special_tokens=SPECIAL, show_progress=False
    )
    trained.add_special_tokens([MASK])
    vocabulary = trained.get_vocab()
    tokenizer = transformers.RobertaTokenizer(
        vocab=vocabulary, merges=merges_of(trained), model_max_length=41
    )
    torch.manual_seed(0)
    model = architecture(transformers.LongformerConfig(**SIZES, **sizes)).eval()
    draw_parameters(model, 0.5, r"LayerNorm\.weight$")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def merges_of(trained):
    return [tuple(pair) for pair in json.loads(trained.to_str())["model"]["merges"]]


def inputs(tokenizer, text):
    found = tokenizer(text, truncation=True, return_tensors="pt")
    globals_ = torch.zeros_like(found["input_ids"])
    globals_[:, 0] = 1
    return found["input_ids"], {"global_attention_mask": globals_}


def embeddings():
    model, tokenizer = made("longformer", transformers.LongformerModel)
    ids, vectors = [], []
    for text in TEXTS:
        token_ids, options = inputs(tokenizer, text)
        with torch.no_grad():
            hidden = model(token_ids, **options).last_hidden_state[0]
        mean = hidden.mean(0)
        vectors.append((mean / mean.norm()).numpy())
        ids.extend([*token_ids[0].tolist(), -1])
    write_outputs("longformer", texts=np.array(TEXTS), text_ids=ids, normalized=np.array(vectors))


def classes():
    model, tokenizer = made(
        "longformer_classifier",
        transformers.LongformerForSequenceClassification,
        id2label={0: "bad", 1: "fair", 2: "good"},
        label2id={"bad": 0, "fair": 1, "good": 2},
        hidden_act="silu",
    )
    with torch.no_grad():
        # No mask of global positions: the model makes that of classifiers.
        logits = [model(inputs(tokenizer, text)[0]).logits[0].numpy() for text in TEXTS]
    write_outputs("longformer_classifier", texts=np.array(TEXTS), logits=np.array(logits))


if __name__ == "__main__":
    embeddings()
    classes()

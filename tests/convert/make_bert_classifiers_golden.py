"""Writes what BERT's classifiers of `transformers` compute, for test_bert_classifiers.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_bert_classifiers_golden.py

Every parameter is drawn at random; no two sizes are equal. The folders `golden/bert_of_tokens` and
`golden/bert_of_texts` are checkpoints as `save_pretrained` writes them,
`golden/bert_of_tokens_outputs.npz` and `golden/bert_of_texts_outputs.npz` what the models make of
ids and of texts. The words of the first are tokenised as transformers does with
`is_split_into_words`, and each word's label is that of its first token.
"""

import shutil

import numpy as np
import torch
import transformers
from make_bert_golden import GOLDEN, WORDS

TEXTS = ["The cats sat on the mat .", "a", "ÜBER, a cat! Cats dog", "日本 fox cs [MASK] a"]
TAGS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]
CLASSES = ["very bad", "fair", "good"]


def made(folder, architecture, labels, seed, **sizes):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=27,  # more than the vocabulary has, as padded embeddings do
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=17,
        type_vocab_size=3,
        layer_norm_eps=1e-2,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        attn_implementation="eager",
        **sizes,
    )
    torch.manual_seed(seed)
    model = architecture(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            parameter.copy_(centre + 0.5 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def outputs(model, texts):
    rng = np.random.default_rng(1)
    real = np.arange(11) < np.array([[11], [6], [1]])
    token_ids = rng.integers(1, 27, (3, 11)) * real
    with torch.no_grad():
        given = model(
            input_ids=torch.tensor(token_ids), attention_mask=torch.tensor(real.astype("int64"))
        )
        of_texts = model(**texts)
    return {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "token_ids": token_ids.astype("int32"),
        "logits": given.logits.numpy(),
        "text_ids": texts["input_ids"].numpy().astype("int32"),
        "text_logits": of_texts.logits.numpy(),
    }


def of_tokens():
    model, tokenizer = made(
        GOLDEN / "bert_of_tokens",
        transformers.BertForTokenClassification,
        TAGS,
        seed=0,
        hidden_size=14,
        intermediate_size=19,
        classifier_dropout=0.3,
    )
    words = [text.split() for text in TEXTS]
    texts = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    found = outputs(model, texts)
    tags = []
    for row, logits in enumerate(found["text_logits"]):
        numbers = texts.word_ids(row)
        firsts = [numbers.index(word) for word in range(len(words[row]))]
        tags.append(" ".join(model.config.id2label[int(logits[at].argmax())] for at in firsts))
    np.savez_compressed(GOLDEN / "bert_of_tokens_outputs.npz", tags=tags, **found)


def of_texts():
    model, tokenizer = made(
        GOLDEN / "bert_of_texts",
        transformers.BertForSequenceClassification,
        CLASSES,
        seed=7,
        hidden_size=10,
        intermediate_size=13,
        problem_type="single_label_classification",
    )
    texts = tokenizer(TEXTS, padding=True, return_tensors="pt")
    found = outputs(model, texts)
    labels = [model.config.id2label[int(row.argmax())] for row in found["text_logits"]]
    np.savez_compressed(GOLDEN / "bert_of_texts_outputs.npz", labels=labels, **found)


if __name__ == "__main__":
    of_tokens()
    of_texts()

"""Writes what BERT's classifiers of `transformers` compute, for test_bert_classifiers.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_bert_classifiers_golden.py

Every parameter is drawn at random; no two sizes are equal. The folders `golden/bert_of_tokens` and
`golden/bert_of_texts` are checkpoints as `save_pretrained` writes them,
`golden/bert_of_tokens_outputs.npz` and `golden/bert_of_texts_outputs.npz` what the models make of
ids and of texts. The words of the first are tokenised as transformers does with
`is_split_into_words`, and each word's label is that of its first token.
"""

import transformers
from golden_files import write_outputs
from make_bert_golden import logits_of, made

TEXTS = ["The cats sat on the mat .", "a", "ÜBER, a cat! Cats dog", "日本 fox cs [MASK] a"]
TAGS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]
CLASSES = ["very bad", "fair", "good"]


def made_classifier(name, architecture, labels, seed, **sizes):
    return made(
        name,
        architecture,
        seed,
        vocab_size=27,  # more than the vocabulary has, as padded embeddings do
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=17,
        type_vocab_size=3,
        layer_norm_eps=1e-2,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        **sizes,
    )


def of_tokens():
    model, tokenizer = made_classifier(
        "bert_of_tokens",
        transformers.BertForTokenClassification,
        TAGS,
        seed=0,
        hidden_size=14,
        intermediate_size=19,
        classifier_dropout=0.3,
    )
    words = [text.split() for text in TEXTS]
    texts = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    found = logits_of(model, texts)
    tags = []
    for row, logits in enumerate(found["text_logits"]):
        numbers = texts.word_ids(row)
        firsts = [numbers.index(word) for word in range(len(words[row]))]
        tags.append(" ".join(model.config.id2label[int(logits[at].argmax())] for at in firsts))
    write_outputs("bert_of_tokens", tags=tags, **found)


def of_texts():
    model, tokenizer = made_classifier(
        "bert_of_texts",
        transformers.BertForSequenceClassification,
        CLASSES,
        seed=7,
        hidden_size=10,
        intermediate_size=13,
        problem_type="single_label_classification",
    )
    texts = tokenizer(TEXTS, padding=True, return_tensors="pt")
    found = logits_of(model, texts)
    labels = [model.config.id2label[int(row.argmax())] for row in found["text_logits"]]
    write_outputs("bert_of_texts", labels=labels, **found)


if __name__ == "__main__":
    of_tokens()
    of_texts()

"""Writes what BERT's heads for pairs of texts compute in `transformers`, for test_pair_heads.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_pair_heads_golden.py

Every parameter is drawn at random; no two sizes are equal. `golden/bert_of_texts` is made by
`make_bert_classifiers_golden.py`; the folders `golden/bert_reranker` and `golden/bert_of_questions`
are checkpoints as `save_pretrained` writes them. `golden/pair_heads_outputs.npz` has what the
models make of pairs of texts.
"""

import torch
import transformers
from golden_files import GOLDEN, write_outputs
from make_bert_golden import made

PAIRS = [
    ("The cats sat .", "a cat !"),
    ("a", "ÜBER, a cat! Cats dog"),
    ("日本 fox cs", "dog"),
    ("on the mat", "mat . cat the"),
]
SIZES = {
    "vocab_size": 27,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 17,
    "layer_norm_eps": 1e-2,
    "hidden_size": 14,
    "intermediate_size": 19,
}


def of_pairs(model, tokenizer):
    first, second = zip(*PAIRS, strict=True)
    inputs = tokenizer(list(first), list(second), padding=True, return_tensors="pt")
    with torch.no_grad():
        return inputs, model(**inputs)


def main():
    folder = GOLDEN / "bert_of_texts"
    classifier = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    inputs, found = of_pairs(classifier, transformers.BertTokenizer.from_pretrained(folder))
    reranker = made(
        "bert_reranker", transformers.BertForSequenceClassification, 3, num_labels=1, **SIZES
    )
    questions = made("bert_of_questions", transformers.BertForQuestionAnswering, 5, **SIZES)
    spans = of_pairs(*questions)[1]
    write_outputs(
        "pair_heads",
        pairs=["\t".join(pair) for pair in PAIRS],
        token_ids=inputs["input_ids"].numpy().astype("int32"),
        segment_ids=inputs["token_type_ids"].numpy().astype("int32"),
        classifier=found.logits.numpy(),
        reranker=of_pairs(*reranker)[1].logits.numpy(),
        starts=spans.start_logits.numpy(),
        ends=spans.end_logits.numpy(),
    )


if __name__ == "__main__":
    main()

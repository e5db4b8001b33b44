"""Writes what T5 of `transformers` computes, for tests/convert/generators/test_t5.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers sentencepiece && python tests/convert/make_t5_golden.py

Every parameter is drawn at random; no two sizes are equal. The folders `golden/t5` and
`golden/t5_v1_1` are checkpoints as `save_pretrained` writes them, with a SentencePiece model
trained on sentences of our own; beside them lie logits, ids of texts, and what greedy search and
four beams make of 200 sources, all of which come to an end; no output is that of more than four.
"""

import numpy as np
import sentencepiece
import torch
import transformers
from golden_files import draw_parameters, empty_folder, generated, write_outputs

NEW_TOKENS = 32
SOURCES, LONGEST = 200, 8
MOST = 4  # sources with the same output
SEARCHES = {"greedy": 1, "beams": 4}
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "We're sure they've seen it; she'll say I'm late, he'd say 1234 or 56.",
    "Die Straße ist naß, über allen Gipfeln ist Ruh' — café, naïve.",
]
TEXTS = [
    *SENTENCES,
    "",
    "  two  spaces\tand a tab\n",
    "日本語 👍🏽 \u200b ﬁne",
    "The <extra_id_0> fox <extra_id_1><extra_id_2>jumps",
    "<extra_id_4> dog <extra_id_5>",
    "the dog</s> mind",
]
SENTINELS = 5
VERSIONS = {
    "t5": {"feed_forward_proj": "relu"},
    "t5_v1_1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}
# A seed, and how far the end's logits are moved: by most others few texts end, or all alike.
DRAWN = {"t5": (6, 1.0), "t5_v1_1": (0, 0.5)}


def write_tokenizer(folder):
    rules = folder / "rules.tsv"
    rules.write_text("FB01\t66 69\n41\t61\n9\t20\nA\t20\n")  # ﬁ, A, tabs, ends of lines
    with (folder / "spiece.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES * 3),
            model_writer=file,
            vocab_size=97,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    rules.unlink()
    tokenizer = transformers.T5Tokenizer.from_pretrained(folder, extra_ids=SENTINELS)
    spiece = (folder / "spiece.model").read_bytes()
    tokenizer.save_pretrained(folder)
    (folder / "spiece.model").write_bytes(spiece)  # which newer versions leave out
    return tokenizer


@torch.no_grad()
def end_some_texts(model, part):
    """Moves the end's logits towards the highest ones."""
    rng = np.random.default_rng(2)
    source, target = (torch.tensor(rng.integers(1, 127, (50, length))) for length in (9, 20))
    found = model(input_ids=source, decoder_input_ids=target, output_hidden_states=True)
    mean = found.decoder_hidden_states[-1].reshape(-1, 15).mean(0)
    scale = 15**0.5 if model.config.tie_word_embeddings else 1.0
    highest = found.logits.max(-1).values.mean()
    model.lm_head.weight[model.config.eos_token_id] += part * scale * highest / (mean @ mean) * mean


def main():
    for version, options in VERSIONS.items():
        folder = empty_folder(version)
        tokenizer = write_tokenizer(folder)
        config = transformers.T5Config(
            vocab_size=127,  # more than the vocabulary has, as published models do
            d_model=15,
            d_kv=4,
            d_ff=37,
            num_layers=3,  # fewer than of the decoder fail in `generate`
            num_decoder_layers=2,
            num_heads=5,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=11,
            layer_norm_epsilon=1e-3,
            decoder_start_token_id=0,
            attn_implementation="eager",
            **options,
        )
        seed, part = DRAWN[version]
        torch.manual_seed(seed)
        model = transformers.T5ForConditionalGeneration(config).eval()
        if version == "t5_v1_1":  # which transformers ties by itself
            model.lm_head.weight = torch.nn.Parameter(torch.zeros(model.shared.weight.shape))
        draw_parameters(model, 0.3, "layer_norm")
        end_some_texts(model, part)
        model.save_pretrained(folder)

        rng = np.random.default_rng(1)
        source = rng.integers(1, 127, (4, 19)) * (np.arange(19) < np.array([[19], [7], [1], [12]]))
        target = rng.integers(1, 127, (4, 13))
        target[:, 0] = 0
        with torch.no_grad():
            logits = model(
                input_ids=torch.tensor(source),
                attention_mask=torch.tensor((source != 0).astype("int64")),
                decoder_input_ids=torch.tensor(target),
            ).logits.numpy()
        ended = []
        tried = 0
        while len(ended) < SOURCES:
            tried += 1
            ids = [*rng.integers(2, 127, rng.integers(0, LONGEST)).tolist(), 1]
            options = {"most": NEW_TOKENS, "max_new_tokens": NEW_TOKENS}
            found = {name: generated(model, ids, n, **options) for name, n in SEARCHES.items()}
            if None not in found.values() and all(
                [pair[name] for pair in ended].count(found[name]) < MOST for name in SEARCHES
            ):
                ended.append(found | {"source": ids + [-1] * (LONGEST - len(ids))})
        outputs = {
            "texts": np.array(TEXTS),
            "text_ids": np.concatenate([tokenizer(text)["input_ids"] + [-1] for text in TEXTS]),
            "sources": np.array([found["source"] for found in ended], "int32"),
            "source_ids": np.where(source > 0, source, -1).astype("int32"),
            "target_ids": target.astype("int32"),
            "logits": logits,
        }
        print(version, tokenizer.__class__, len(tokenizer), tried, "sources tried")
        for name in SEARCHES:
            outputs[name] = np.array([pair[name] for pair in ended], "int32")
            rows = [[*row[row >= 0]] for row in outputs[name]]
            print(name, len(set(map(tuple, rows))), "outputs, lengths", sorted(set(map(len, rows))))
        write_outputs(version, **outputs)


if __name__ == "__main__":
    main()

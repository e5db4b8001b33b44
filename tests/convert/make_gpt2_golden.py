"""Writes what GPT-2 of `transformers` computes, for tests/convert/generators/test_gpt2.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_gpt2_golden.py

Every parameter is drawn at random; no two sizes are equal. The folder `golden/gpt2` is a checkpoint
as `save_pretrained` writes it, with a vocabulary trained on sentences of our own;
`golden/gpt2_outputs.npz` holds logits, and what greedy search and four beams make of 200 prompts,
all of which come to an end.
"""

import numpy as np
import torch
import transformers
from golden_files import draw_parameters, empty_folder, generated, write_outputs
from tokenizers import ByteLevelBPETokenizer

END_OF_TEXT = "<|endoftext|>"
NEW_TOKENS = 32
PROMPTS, LONGEST = 200, 8
SEARCHES = {"greedy": 1, "beams": 4}
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "We're sure they've seen it; she'll say I'm late, he'd say 1234 or 56.",
    "Die Straße ist naß, über allen Gipfeln ist Ruh' — café, naïve.",
]
TEXTS = [*SENTENCES, "", "  two  spaces\tand a tab\n", "日本語 👍🏽 \u200b", f"a{END_OF_TEXT} b"]


def main():
    folder = empty_folder("gpt2")
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        SENTENCES * 3, vocab_size=307, special_tokens=[END_OF_TEXT], show_progress=False
    )
    trained.save_model(str(folder))
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(folder)
    end = tokenizer.eos_token_id
    config = transformers.GPT2Config(
        vocab_size=311,  # more than the vocabulary has, as padded embeddings do
        n_embd=21,
        n_layer=2,
        n_head=3,
        n_inner=37,
        n_positions=41,
        layer_norm_epsilon=1e-3,
        bos_token_id=end,
        eos_token_id=end,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    draw_parameters(model, 0.5, "ln_.*weight$")
    with torch.no_grad():  # so that texts end
        model.transformer.wte.weight[end] += 0.65 * torch.sign(model.transformer.ln_f.bias)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    rng = np.random.default_rng(1)
    token_ids = rng.integers(0, 311, (4, 13))
    real = np.arange(13) < np.array([[13], [7], [1], [10]])
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor(token_ids * real),
            attention_mask=torch.tensor(real.astype("int64")),
        ).logits.numpy()
    ended = []
    while len(ended) < PROMPTS:
        ids = rng.integers(0, tokenizer.vocab_size, rng.integers(0, LONGEST + 1)).tolist()
        options = {"most": NEW_TOKENS, "max_new_tokens": NEW_TOKENS, "pad_token_id": end}
        found = {
            name: generated(model, ids or [end], beams, **options)
            for name, beams in SEARCHES.items()
        }
        if None not in found.values():
            ended.append(found | {"prompt": ids + [-1] * (LONGEST - len(ids))})
    outputs = {
        "texts": np.array(TEXTS),
        "prompts": np.array([found["prompt"] for found in ended], "int32"),
        "text_ids": np.concatenate([tokenizer(text)["input_ids"] + [-1] for text in TEXTS]),
        "token_ids": np.where(real, token_ids, -1).astype("int32"),
        "logits": logits,
    }
    for name in SEARCHES:
        outputs[name] = np.array([pair[name] for pair in ended], "int32")
        rows = [[*row[row >= 0]] for row in outputs[name]]
        print(name, len(set(map(tuple, rows))), "outputs of lengths", sorted(set(map(len, rows))))
    write_outputs("gpt2", **outputs)


if __name__ == "__main__":
    main()

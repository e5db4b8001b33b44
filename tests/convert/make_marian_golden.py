"""Writes what Marian of `transformers` computes, for tests/convert/generators/test_marian.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers sentencepiece && python tests/convert/make_marian_golden.py

Every parameter is drawn at random, and then trained a little to turn random ids round, without
which what comes out would hardly depend on the source; no two sizes are equal. The folders
`golden/marian`, of one vocabulary for both sides, and `golden/marian_separate` are checkpoints as
`save_pretrained` writes them, with SentencePiece models trained on sentences of our own, whose
pieces the vocabularies number at random, leave out here and there, and add to. Beside them lie
encoder states, logits, ids of texts, and what greedy search and four beams make of 200 sources, by
ids and as texts. Some are as long as may be, where an end is forced.
"""

import json
import random

import numpy as np
import sentencepiece
import torch
import transformers
from golden_files import draw_parameters, empty_folder, generated, write_outputs

NEW_TOKENS = 6
SOURCES, LONGEST = 200, 8
SEARCHES = {"greedy": 1, "beams": 4}
SENTENCES = {
    "source": [
        "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
        "We're sure they've seen it; she'll say I'm late, he'd say 1234 or 56.",
    ],
    "target": [
        "Die Straße ist naß, über allen Gipfeln ist Ruh' — café, naïve.",
        "Der Hund bellt den Fuchs an; ich weiß es nicht.",
    ],
}
# Not of the models, but in the vocabularies: languages, and characters that are unknown.
OTHERS = [">>deu<<", ">>fra<<", "中国", "ж", "😀", "▁"]
TEXTS = [
    *SENTENCES["source"],
    *SENTENCES["target"],
    "",
    " ",
    "  two  spaces\tand a tab\n",
    "日本語 👍🏽 \u200b ﬁne e\u0301",
    "中国 a中国 中 ж жж 😀 مرحبا",
    "the dog</s> mind <unk><pad> <s>",
    ">>fra<< the dog",
    ">>deu<<the >>deu<< dog",
    " >>fra<< the",
    ">>xyz<< the</s>>>fra<<\ndog",
    ">>fra the",
    ">>fra\n<< a<<",
]
COMMON = {
    "d_model": 15,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 29,
    "encoder_layers": 3,  # fewer than of the decoder fail in `generate`
    "decoder_layers": 2,
    "max_position_embeddings": 41,
    "attn_implementation": "eager",
}
VERSIONS = {
    "marian": {"activation_function": "swish", "scale_embedding": True},
    "marian_separate": {
        "activation_function": "relu",
        "scale_embedding": False,
        "share_encoder_decoder_embeddings": False,
    },
}


def write_pieces(folder, side, vocab_size):
    """Trains a model, and returns its pieces but for special ones."""
    rules = folder / "rules.tsv"
    rules.write_text("FB01\t66 69\n41\t61\n9\t20\nA\t20\n")  # ﬁ, A, tabs, ends of lines
    with (folder / f"{side}.spm").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES[side] * 3),
            model_writer=file,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    rules.unlink()
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
    return [model.id_to_piece(number) for number in range(3, model.get_piece_size())]


def write_vocabulary(path, pieces):
    some = [piece for number, piece in enumerate(pieces) if number % 9 != 4]
    tokens = list(dict.fromkeys([*some, *OTHERS]))
    random.Random(1).shuffle(tokens)
    tokens = ["</s>", "<unk>", *tokens, "<pad>"]
    path.write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    return len(tokens)


def write_tokenizer(folder, is_shared):
    """Writes the files, and returns the tokenizer and the sizes of the vocabularies."""
    source, target = write_pieces(folder, "source", 71), write_pieces(folder, "target", 61)
    if is_shared:
        sizes = [write_vocabulary(folder / "vocab.json", [*source, *target])]
    else:
        sizes = [
            write_vocabulary(folder / "vocab.json", source),
            write_vocabulary(folder / "target_vocab.json", target),
        ]
    config = {"source_lang": "eng", "target_lang": "deu", "separate_vocabs": not is_shared}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer, sizes


def draw_all(model):
    """Draws the bias of the logits too, and no positions."""
    torch.manual_seed(0)
    draw_parameters(model, 0.25, r"layer_norm\.weight", kept="embed_positions")
    with torch.no_grad():
        bias = model.final_logits_bias
        bias.copy_(0.5 * torch.randn(bias.shape))
        bias[0, 1] = -20.0  # unknown, which no task generates


def train_a_little(model, steps):
    """Teaches sources backwards."""
    rng = np.random.default_rng(3)
    pad = model.config.decoder_start_token_id
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(steps):
        lengths = rng.integers(0, LONGEST, 64)[:, None]
        places = np.arange(LONGEST)
        ids = rng.integers(2, pad, (64, LONGEST))
        ids = np.where(places < lengths, ids, np.where(places == lengths, 0, pad))
        turned = np.take_along_axis(ids, np.maximum(lengths - 1 - places, 0), axis=1)
        turned = np.where(places < lengths, turned, np.where(places == lengths, 0, -100))
        model(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(places <= lengths).long(),
            labels=torch.tensor(turned),
        ).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    for version, options in VERSIONS.items():
        folder = empty_folder(version)
        tokenizer, sizes = write_tokenizer(folder, "separate" not in version)
        pad = sizes[-1] - 1
        config = transformers.MarianConfig(
            vocab_size=sizes[0],
            decoder_vocab_size=sizes[-1],
            pad_token_id=pad,
            decoder_start_token_id=pad,
            **COMMON,
            **options,
        )
        model = transformers.MarianMTModel(config).eval()
        draw_all(model)
        train_a_little(model, 150)
        model.generation_config = transformers.GenerationConfig(
            pad_token_id=pad,
            eos_token_id=0,
            forced_eos_token_id=0,
            decoder_start_token_id=pad,
            bad_words_ids=[[pad]],
            num_beams=4,
            max_length=NEW_TOKENS + 1,
            renormalize_logits="separate" in version or None,
        )
        model.save_pretrained(folder)

        rng = np.random.default_rng(1)
        lengths = np.array([[19], [7], [1], [12]])
        is_token = np.arange(19) < lengths
        source = rng.integers(0, sizes[0] - 1, (4, 19))
        target = rng.integers(0, pad, (4, 13))
        target[:, 0] = pad
        with torch.no_grad():
            found = model(
                input_ids=torch.tensor(source),
                attention_mask=torch.tensor(is_token.astype("int64")),
                decoder_input_ids=torch.tensor(target),
            )
        texts = [tokenizer(text)["input_ids"] for text in TEXTS]
        # Their padding's id is always that of the source.
        target_texts = [text.replace("<pad>", "") for text in TEXTS]
        of_target = [tokenizer(text_target=text)["input_ids"] for text in target_texts]
        outputs = {
            "texts": np.array(TEXTS),
            "text_ids": np.concatenate([[*ids, -1] for ids in texts]),
            "target_texts": np.array(target_texts),
            "target_text_ids": np.concatenate([[*ids, -1] for ids in of_target]),
            "source_ids": np.where(is_token, source, -1).astype("int32"),
            "target_ids": target.astype("int32"),
            "encoded": found.encoder_last_hidden_state.numpy(),
            "logits": found.logits.numpy(),
        }
        sources = [
            [*rng.integers(2, sizes[0] - 1, rng.integers(0, LONGEST)).tolist(), 0]
            for _ in range(SOURCES)
        ]
        outputs["sources"] = np.array(
            [ids + [-1] * (LONGEST - len(ids)) for ids in sources], "int32"
        )
        print(version, tokenizer.__class__, sizes)
        for name, beams in SEARCHES.items():
            options = {"most": NEW_TOKENS, "max_length": NEW_TOKENS + 1}
            rows = [generated(model, ids, beams, **options) for ids in sources]
            outputs[name] = np.array(rows, "int32")
            lengths = (outputs[name] >= 0).sum(1)
            forced = (lengths == NEW_TOKENS).sum()
            print(name, len(set(map(tuple, rows))), "outputs,", forced, "of the greatest length,")
            print("lengths", np.bincount(lengths).tolist(), "unknown", (outputs[name] == 1).sum())
        rows = [row[row >= 0] for row in outputs["beams"]]
        texts = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]
        outputs["written"] = np.array(texts)
        write_outputs(version, **outputs)


if __name__ == "__main__":
    main()

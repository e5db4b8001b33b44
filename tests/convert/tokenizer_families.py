"""Tokenizers of the `tokenizers` library with the components of families of models.

They are trained here, because files cannot be downloaded, and nothing of others is committed.
"""

import functools
import io
import json

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = GPT4.replace("{1,3}", "")
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"]


@functools.cache
def charsmap(rule="nmt_nfkc"):
    """The replacements of a rule, which SentencePiece brings along."""
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abcdefgh"] * 9),
        model_writer=buffer,
        vocab_size=12,
        hard_vocab_limit=False,
        normalization_rule_name=rule,
        minloglevel=2,
    )
    return ModelProto.FromString(buffer.getvalue()).normalizer_spec.precompiled_charsmap


def template(start, end, between=1, segment=1):
    """The processor of texts between two tokens."""
    names = {"cls": start, "sep": end}
    ends = " ".join([f"{end}:0"] * between)
    return lambda tokenizer: processors.TemplateProcessing(
        single=f"{start}:0 $A:0 {end}:0",
        pair=f"{start}:0 $A:0 {ends} $B:{segment} {end}:{segment}",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in names.values()],
    )


def word_piece(special=BERT, prefix="##", most=100, processor=None, **options):
    def make(texts, size):
        unknown = "[UNK]"
        tokenizer = Tokenizer(
            models.WordPiece(
                unk_token=unknown,
                continuing_subword_prefix=prefix,
                max_input_chars_per_word=most,
            )
        )
        tokenizer.normalizer = normalizers.BertNormalizer(**options)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            special_tokens=special,
            continuing_subword_prefix=prefix,
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        start, end = special[-3:-1] if special is BERT else ("<s>", "</s>")
        if processor is None:
            tokenizer.post_processor = processors.BertProcessing(
                (end, tokenizer.token_to_id(end)), (start, tokenizer.token_to_id(start))
            )
        else:
            tokenizer.post_processor = processor(tokenizer)
        return tokenizer

    return make


def mpnet(texts, size):
    special = ["<s>", "<pad>", "</s>", "[UNK]"]
    tokenizer = word_piece([*special, "<mask>"], processor=template("<s>", "</s>", 2, 0))(
        texts, size
    )
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return tokenizer


def byte_level(
    special=ROBERTA, prefix=False, pattern=None, normalizer=None, added=(), processor=None, **model
):
    def make(texts, size):
        tokenizer = Tokenizer(models.BPE(**model))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        own = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=pattern is None)
        if pattern is not None:
            split = pre_tokenizers.Split(Regex(pattern), "isolated")
            own = pre_tokenizers.Sequence([split, own])
        tokenizer.pre_tokenizer = own
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        for one in added:
            tokenizer.add_tokens([one])
        tokenizer.decoder = decoders.ByteLevel()
        if processor is not None:
            tokenizer.post_processor = processor(tokenizer)
        return tokenizer

    return make


def roberta_processing(prefix=False):
    return lambda tokenizer: processors.RobertaProcessing(
        ("</s>", tokenizer.token_to_id("</s>")),
        ("<s>", tokenizer.token_to_id("<s>")),
        trim_offsets=True,
        add_prefix_space=prefix,
    )


MASK = AddedToken("<mask>", lstrip=True, normalized=False, special=True)


def unigram(special, unknown, normalizer, pre_tokenizer, processor=None, added=(), **options):
    def make(texts, size):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizer()
        tokenizer.pre_tokenizer = pre_tokenizer()
        trainer = trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token=unknown, show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        content = json.loads(tokenizer.to_str())
        content["model"] |= options
        tokenizer = Tokenizer.from_str(json.dumps(content))
        for one in added:
            tokenizer.add_tokens([one])
        if processor is not None:
            tokenizer.post_processor = processor(tokenizer)
        return tokenizer

    return make


def of_spm(tokenizer=None):
    """The normalizer of SentencePiece models in general."""
    return normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap()),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(" {2,}"), "▁"),
        ]
    )


def of_albert(lowercase=True):
    steps = [
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
        normalizers.NFKD(),
        normalizers.StripAccents(),
        *([normalizers.Lowercase()] if lowercase else []),
        normalizers.Precompiled(charsmap()),
        normalizers.Replace(Regex(" {2,}"), " "),
    ]
    return lambda: normalizers.Sequence(steps)


def of_deberta():
    return normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Strip(),
            normalizers.Precompiled(charsmap("nmt_nfkc_cf")),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )


def metaspace(scheme="always", split=True):
    return lambda: pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)


def after(*first):
    return lambda: pre_tokenizers.Sequence([*first, metaspace()()])


def with_bytes(texts, size):
    """Unknown characters in pieces of bytes, as newer SentencePiece models have them."""
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    make = unigram(
        ["<pad>", "</s>", "<unk>", *names],
        "<unk>",
        lambda: normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁"), normalizers.NFC()]
        ),
        lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True)]),
        byte_fallback=True,
    )
    content = json.loads(make(texts, size).to_str())
    content["added_tokens"] = content["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(content))


SPACES = [AddedToken(" " * count, normalized=True) for count in range(24, 1, -1)]
PUNCTUATION = pre_tokenizers.Punctuation("isolated")
FAMILIES = {
    "bert": word_piece(lowercase=True),
    "bert cased": word_piece(lowercase=False),
    "bert accents": word_piece(lowercase=True, strip_accents=False, handle_chinese_chars=False),
    "bert unclean": word_piece(lowercase=False, strip_accents=True, clean_text=False),
    "other word pieces": word_piece(prefix="@@", most=7),
    "mpnet": mpnet,
    "roberta": byte_level(added=[MASK], processor=roberta_processing()),
    "roberta prefix": byte_level(prefix=True, added=[MASK], processor=roberta_processing(True)),
    "deberta": byte_level(BERT, processor=template("[CLS]", "[SEP]")),
    "modernbert": byte_level(
        ["<|padding|>", "<|endoftext|>"],
        normalizer=normalizers.NFC(),
        added=[
            *SPACES,
            *(AddedToken(one, special=True, normalized=False) for one in BERT[:4]),
            AddedToken("[MASK]", special=True, lstrip=True, normalized=False),
        ],
        processor=template("[CLS]", "[SEP]", segment=0),
    ),
    "gpt-4": byte_level(["<|endoftext|>"], pattern=GPT4, ignore_merges=True),
    "gpt-4o": byte_level(["<|endoftext|>"], pattern=GPT4O),
    "qwen": byte_level(["<|endoftext|>"], pattern=QWEN, normalizer=normalizers.NFC()),
    "xlm-roberta": unigram(
        ROBERTA, "<unk>", of_spm, metaspace(), template("<s>", "</s>", 2, 0), [MASK]
    ),
    "camembert": unigram(
        ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<s>", "</s>"],
        "<unk>",
        of_spm,
        after(pre_tokenizers.WhitespaceSplit()),
        template("<s>", "</s>", 2, 0),
        [MASK],
    ),
    "albert": unigram(
        ["<pad>", "<unk>", "[CLS]", "[SEP]"],
        "<unk>",
        of_albert(),
        metaspace(),
        template("[CLS]", "[SEP]"),
        [AddedToken("[MASK]", lstrip=True, normalized=False, special=True)],
    ),
    "big_bird": unigram(
        ["<pad>", "</s>", "<s>", "<unk>", "[SEP]", "[CLS]", "[MASK]"],
        "<unk>",
        of_spm,
        metaspace(),
        template("[CLS]", "[SEP]"),
    ),
    "deberta-v3": unigram(
        ["[PAD]", "[CLS]", "[SEP]", "[UNK]"],
        "[UNK]",
        of_deberta,
        after(PUNCTUATION),
        template("[CLS]", "[SEP]"),
        [AddedToken("[MASK]", special=True, normalized=False)],
    ),
    "t5": unigram(
        ["<pad>", "</s>", "<unk>"],
        "<unk>",
        lambda: normalizers.Precompiled(charsmap()),
        after(pre_tokenizers.WhitespaceSplit()),
    ),
    "unigram first": unigram(
        ["<pad>", "<unk>"],
        "<unk>",
        lambda: normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.NFKD()]),
        metaspace("first"),
        added=[AddedToken("<mask>", normalized=False)],
    ),
    "unigram whole": unigram(
        ["<pad>", "<unk>"],
        "<unk>",
        lambda: normalizers.Sequence(
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        ),
        metaspace(split=False),
    ),
    "bytes": with_bytes,
}
"""What makes a tokenizer of texts and a size, by family."""

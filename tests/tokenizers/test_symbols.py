import tensorflow as tf

from keras_attn.tokenizers import SymbolTokenizer
from tests.refusals import refusals, refused
from tests.tokenizers.golden import decoded


def test_ids_by_hand():
    tokenizer = SymbolTokenizer.train(["HH AH0 L", "L OW1", "  L\tAH0\n"])
    # L three times, AH0 twice, then HH and OW1 once each.
    assert tokenizer.vocabulary[4:] == ["L", "AH0", "HH", "OW1"]
    ids = tokenizer.tokenize(["HH AH0", " \t L \n\r\f\v OW1 ", "ZZ L", " "])
    assert ids.to_list() == [[6, 5], [4, 7], [3, 4], []]
    assert decoded(tokenizer.detokenize(ids.to_tensor())) == ["HH AH0", "L OW1", "<unk> L", ""]


def test_only_ascii_whitespace_separates_in_training_and_in_use():
    symbols = ["a\u00a0b", "c\u3000d", "e\x1cf", "g\0h", "\u2028"]
    tokenizer = SymbolTokenizer.train([" ".join(symbols)])
    assert set(tokenizer.vocabulary[4:]) == set(symbols)
    ids = tokenizer.tokenize([" ".join(symbols)])
    assert ids.row_lengths().numpy().tolist() == [5]
    assert decoded(tokenizer.detokenize(ids)) == [" ".join(symbols)]


def test_symbols_spelled_like_special_tokens_are_unknown():
    tokenizer = SymbolTokenizer.train(["a <s> <unk> </s> <pad> <s> b a"])
    assert tokenizer.vocabulary[4:] == ["a", "b"]
    assert tokenizer.tokenize(["<s> a <pad> </s>"]).to_list() == [[3, 4, 3, 3]]


def test_min_count():
    texts = ["a a a b", "b b c"]
    assert SymbolTokenizer.train(texts, min_count=3).vocabulary[4:] == ["a", "b"]
    message = r"at least `min_count`.*min_count=4, distinct_symbols=3"
    refused(message, SymbolTokenizer.train, texts, min_count=4)


def test_malformed_bytes_are_unknown():
    tokenizer = SymbolTokenizer(["a"])
    assert tokenizer.tokenize(tf.constant([b"\xff\xfe a", b"a\xff"])).to_list() == [[3, 4], [3]]


test_wrong_vocabularies = refusals(
    SymbolTokenizer,
    ({"symbols": ["a", "b c"]}, r"`symbols\[1\]` must be text without whitespace.*symbol='b c'"),
    ({"symbols": []}, r"`symbols` must not be empty.*symbols=\[\]"),
    ({"symbols": ["a\n"]}, r"`symbols\[0\]` must be text without whitespace.*symbol='a\\n'"),
    ({"symbols": ["a", ""]}, r"`symbols\[1\]` must be text without whitespace.*symbol=''"),
    ({"symbols": ["a", "b", "a"]}, r"must not contain a token twice\. Received: token='a'"),
    ({"symbols": ["a", "</s>"]}, r"must not repeat a special token\. Received: token='</s>'"),
)

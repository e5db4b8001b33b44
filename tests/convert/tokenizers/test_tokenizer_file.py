"""Tokenizers of files, judged by the `tokenizers` library, which reads the same files."""

import gzip
import json

import pytest
import tensorflow as tf
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from keras_attn.convert.tokenizers.tokenizer_file import read_tokenizer
from keras_attn.tokenizers import PipelineTokenizer, load_tokenizer
from keras_attn.tokenizers.pipeline.tokenizer import file_tokens
from tests.backends import thinned
from tests.convert.made import write_json
from tests.convert.tokenizer_families import FAMILIES
from tests.harness import run_python
from tests.refusals import refused, refused_in_one_line
from tests.tokenizers.golden import GOLDEN, pages

pytestmark = pytest.mark.tensorflow

# Start, end, ends between texts, segments, padding, mask.
FRAMES = {
    "bert": ("[CLS]", "[SEP]", 1, True, "[PAD]", "[MASK]"),
    "mpnet": ("<s>", "</s>", 2, False, "<pad>", "<mask>"),
    "roberta": ("<s>", "</s>", 2, False, "<pad>", "<mask>"),
    "deberta": ("[CLS]", "[SEP]", 1, True, "[PAD]", "[MASK]"),
    "modernbert": ("[CLS]", "[SEP]", 1, False, "[PAD]", "[MASK]"),
    "xlm-roberta": ("<s>", "</s>", 2, False, "<pad>", "<mask>"),
    "albert": ("[CLS]", "[SEP]", 1, True, "<pad>", "[MASK]"),
    "big_bird": ("[CLS]", "[SEP]", 1, True, "<pad>", "[MASK]"),
    "deberta-v3": ("[CLS]", "[SEP]", 1, True, "[PAD]", "[MASK]"),
}
NASTY = [
    *("a<mask>b", "  <mask>  x", "x  [MASK] [MASK]y", "<s>a</s>", "[CLS] a [SEP]<pad>", "<unk>a"),
    *("\uff1cunk\uff1e \uff1cs\uff1e", " <|endoftext|>  x", "a" + " " * 30 + "[MASK]", "▁a ▁ b▁"),
    *(
        "    def f(x):\n        return  x\n\n\n",
        "\t\tx\r\ny \r\n z",
        "1234567 12 ٣٤٥٦٧",
        "a/\n/\nb",
    ),
    *("'S 'T I'LL we'VE \u017f'\u017f'\u212a", "HelloWorldFooBAR don't DON'T", "<0x41>", "``q''"),
    *("ﬁ\u0301 ⅓ ① ㍿ ﷺ", "e\u0301\u0323 ǘ u\u0308\u0301", "\u0600a\u0301 \u200ba\u200d\u0301"),
    *(
        "한국어 \u1112\u1161\u11ab",
        "\0a\0",
        "a\u0085b\u0096c",
        "ab" * 99,
        "é" * 99,
        "....!!!!!",
        "x" * 45,
    ),
    *("©\u200d®™\u200d", "\r\n\r\n", "\n \n  \n x", "trail   ", "   lead", " ", "", "\ufeffbom"),
    *(
        "a\u0301\u0301\u0301\u0301b",
        "اَلْعَرَبِيَّةُ",
        "\U00016121 \u32ff \U0001fbf0 \U000105d2\u0307 \U00011938",
    ),
]


def trained(name, folder, size=500):
    """A tokenizer of a family and its file."""
    texts = [text.replace("\0", "") for text in GOLDEN["texts"] if len(text) < 90]
    judge = FAMILIES[name](texts * 3, size)
    judge.save(str(folder / "tokenizer.json"))
    return judge


def ours_of(ids, padding_id):
    """The ids of a file as ours."""
    return [0 if n == padding_id else n + (n < padding_id) for n in ids]


def differing(read, judge, texts):
    """The texts whose ids differ."""
    found = read.tokenizer.tokenize(texts).to_list()
    judged = [one.ids for one in judge.encode_batch(texts, add_special_tokens=False)]
    return [
        (text, ids, expected)
        for text, ids, expected in zip(texts, found, judged, strict=True)
        if ids != ours_of(expected, read.padding_id)
    ]


@pytest.mark.parametrize("name", thinned(FAMILIES, on_tensorflow=5))
def test_ids_are_those_of_the_library(name, tmp_path):
    judge = trained(name, tmp_path)
    read = read_tokenizer(tmp_path)
    texts = [*GOLDEN["texts"], *NASTY]
    assert differing(read, judge, texts) == []
    assert len(set(read.tokenizer.tokenize(texts).values.numpy())) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_code_point_and_real_lines(name, shared_data, tmp_path):
    judge = trained(name, tmp_path)
    read = read_tokenizer(tmp_path)
    with gzip.open(shared_data / "multi30k" / "train.en.gz", "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for _, line in zip(range(2000), lines, strict=False)]
    with gzip.open(shared_data / "imdb" / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        reviews = [json.loads(line) for _, line in zip(range(2000), lines, strict=False)]
    texts += [review["text"] for review in reviews]
    texts += [*pages(" x"), *pages("a", 2)]
    for first in range(0, len(texts), 500):
        assert differing(read, judge, texts[first : first + 500]) == []


PLACED = ["A man's red-shirt  isn't, wet\nat (1990) x.", "", "a  ☃ b", "ﬁne…½ ÜBER Zoë", "x" * 150]


def trimmed(text, begin, end):
    """A place without the spaces at its ends."""
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return begin, end


@pytest.mark.parametrize("name", thinned(FAMILIES, on_tensorflow=5))
def test_places_are_those_of_the_library(name, tmp_path):
    judge = trained(name, tmp_path)
    tokenizer = read_tokenizer(tmp_path).tokenizer
    signature = [tf.TensorSpec([None], tf.string)]
    graph = tf.function(tokenizer.tokenize_with_places, input_signature=signature)
    ids, begins, ends = (x.to_list() for x in graph(PLACED))
    assert ids == tokenizer.tokenize(PLACED).to_list()
    for text, first, last in zip(PLACED, begins, ends, strict=True):
        if name == "bytes" and not text.isascii():  # whose bytes the library counts as characters
            continue
        found = list(zip(first, last, strict=True))
        judged = judge.encode(text, add_special_tokens=False).offsets
        for place, other in zip(found, judged, strict=True):
            # What is nothing but a space is empty here.
            assert place == trimmed(text, *other) or not text[slice(*place)].strip()
        assert any(begin < end for begin, end in found) == bool(text)


def test_the_oldest_files_do_not_name_their_model(tmp_path):
    judge = trained("albert", tmp_path)
    path = tmp_path / "tokenizer.json"
    file = json.loads(path.read_text(encoding="utf-8"))
    del file["model"]["type"]
    write_json(path, file)
    tokenizer = read_tokenizer(tmp_path).tokenizer
    ids, begins, ends = (x.to_list() for x in tokenizer.tokenize_with_places(["the dog, a fox"]))
    assert tokenizer.detokenize(tf.constant(ids)).numpy().tolist() == [b"the dog, a fox"]
    places = zip(begins[0], ends[0], strict=True)
    judged = judge.encode("the dog, a fox", add_special_tokens=False).offsets
    assert list(places) == [trimmed("the dog, a fox", *one) for one in judged]


@pytest.mark.parametrize("part", ["Removed", "CharDelimiterSplit", "Prepend"])
def test_parts_that_lose_places(part, tmp_path):
    trained("bert unclean", tmp_path)
    file = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    whole = {"pattern": {"String": "-"}, "behavior": "Removed", "invert": False}
    if part == "Prepend":
        file["normalizer"] = {"type": part, "prepend": "x"}
    else:
        options = whole | {"type": "Split"} if part == "Removed" else {"delimiter": "-"}
        file["pre_tokenizer"] = {"type": part} | options
    definition = {key: file[key] for key in ("normalizer", "pre_tokenizer", "model")}
    tokenizer = PipelineTokenizer(definition, ["[PAD]", "[CLS]", "[SEP]", "[UNK]"])
    refused(f"are lost with .*part='{part}'", tokenizer.tokenize_with_places, ["a"])


def test_accents_belong_to_their_characters(tmp_path):
    trained("bert unclean", tmp_path)
    tokenizer = read_tokenizer(tmp_path).tokenizer
    _, begins, ends = (x.to_list() for x in tokenizer.tokenize_with_places(["ae\u0301 b\u0300"]))
    assert (begins[0][0], begins[0][-1]) == (0, 4)
    assert max(end for end in ends[0] if end < 4) == 3
    assert ends[0][-1] == 6


@pytest.mark.parametrize("name", thinned(FRAMES, on_tensorflow=4))
def test_what_is_around_texts(name, tmp_path):
    """Pairs as the library frames them, from what is read."""
    judge = trained(name, tmp_path)
    read = read_tokenizer(tmp_path)
    tokenizer, pairs = read.tokenizer, [("the dog", "a fox, 12"), ("", "x")]
    start, end, ends, segments, pad, mask = FRAMES[name]
    names = [tokenizer.start_id, tokenizer.end_id, tokenizer.pad_id, tokenizer.mask_id]
    assert [tokenizer.vocabulary[n] for n in names] == [start, end, pad, mask]
    assert (read.with_start, read.ends_between, read.segments) == (True, ends, segments)
    assert tokenizer.is_special[names].all()
    for pair in pairs:
        first, second = tokenizer.tokenize(pair).to_list()
        framed = [names[0], *first, *[names[1]] * ends, *second, names[1]]
        judged = judge.encode(*pair)
        assert framed == ours_of(judged.ids, read.padding_id)
        if segments:
            assert judged.type_ids == [0] * (2 + len(first)) + [1] * (1 + len(second))


def test_saved_and_loaded(tmp_path):
    trained("modernbert", tmp_path)
    tokenizer = read_tokenizer(tmp_path).tokenizer
    tokenizer.save(tmp_path / "saved")
    loaded = load_tokenizer(tmp_path / "saved")
    assert type(loaded) is PipelineTokenizer
    assert (loaded.digest, loaded.mask_id) == (tokenizer.digest, tokenizer.mask_id)
    assert loaded.tokenize(NASTY).to_list() == tokenizer.tokenize(NASTY).to_list()


SCRIPT = """
import sys
import tensorflow as tf
import tensorflow_text
for folder in sys.argv[1:]:
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        output = signature.outputs["ids"].name
        print(session.run(output, {signature.inputs["text"].name: [b"the  dog!!!!", b""]}).tolist())
"""


class Served(tf.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, text):
        return {"ids": self.tokenizer.tokenize(text).to_tensor()}


def test_saved_in_a_graph(tmp_path):
    """TensorFlow and its text ops alone give the same ids, in a session as a server has one."""
    folders, expected = [], []
    for name in ("albert", "gpt-4"):
        folder = tmp_path / name
        folder.mkdir()
        trained(name, folder)
        served = Served(read_tokenizer(folder).tokenizer)
        tf.saved_model.save(served, str(folder / "model"), signatures=served.serve)
        folders.append(str(folder / "model"))
        ids = served.tokenizer.tokenize(["the  dog!!!!", ""]).to_tensor()
        expected.append(str(ids.numpy().tolist()))
    assert run_python(SCRIPT, *folders).splitlines() == expected


@pytest.mark.parametrize("name", thinned(["roberta", "albert", "bytes", "t5", "bert cased"]))
def test_text_comes_back(name, tmp_path):
    trained(name, tmp_path)
    tokenizer = read_tokenizer(tmp_path).tokenizer
    text = "the lazy dog"
    found = tokenizer.detokenize(tokenizer.tokenize([text]))
    assert found.numpy()[0].decode() == text


def test_special_tokens_of_untrusted_texts(tmp_path):
    judge = trained("roberta", tmp_path)
    write_json(tmp_path / "tokenizer_config.json", {"split_special_tokens": True})
    read = read_tokenizer(tmp_path)
    judge.encode_special_tokens = True
    assert differing(read, judge, NASTY) == []
    assert read.tokenizer.mask_id not in read.tokenizer.tokenize(["a<mask>b"]).to_list()[0]


@pytest.mark.parametrize("token", ["the", "\ue000"])
def test_added_tokens_with_options(token, tmp_path):
    """Every combination, beside words, spaces and each other."""
    texts = [
        f"{a}{token}{b}{token}{c}" for a in ("", "x", " ", "  .") for b in " -y" for c in " x!"
    ]
    for options in range(8):
        flags = {
            name: bool(options >> place & 1)
            for place, name in enumerate(("single_word", "lstrip", "rstrip"))
        }
        judge = Tokenizer(models.WordPiece({"[UNK]": 0, "x": 1, "##x": 2}, unk_token="[UNK]"))
        judge.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        judge.add_tokens([AddedToken(token, normalized=bool(options & 1), **flags), "[PAD]"])
        judge.save(str(tmp_path / "tokenizer.json"))
        texts = [*texts, token, f"{token}{token}", f"{token} {token}", f"a{token}{token}b"]
        assert differing(read_tokenizer(tmp_path), judge, texts) == []


def test_options_of_the_configuration(tmp_path):
    """Classes of a family read options that differ from those of the file; the general one not."""
    trained("bert cased", tmp_path)
    for name, expected in (("BertTokenizer", True), ("PreTrainedTokenizerFast", False)):
        options = {"tokenizer_class": name, "do_lower_case": True}
        write_json(tmp_path / "tokenizer_config.json", options)
        assert read_tokenizer(tmp_path).tokenizer.lowercase is expected


def test_padding_anywhere_or_missing(tmp_path):
    judge = trained("qwen", tmp_path)
    read = read_tokenizer(tmp_path)
    assert read.tokenizer.vocabulary[:2] == ["<|padding|>", "<|endoftext|>"]
    assert read.padding_id == judge.get_vocab_size()
    assert (read.with_start, read.ends_between, read.segments) == (False, 0, False)
    write_json(tmp_path / "tokenizer_config.json", {"pad_token": "!"})
    read = read_tokenizer(tmp_path)
    assert (read.tokenizer.vocabulary[0], read.padding_id) == ("!", judge.token_to_id("!"))
    assert differing(read, judge, ["the dog!"]) == []


def changed(**values):
    """Changes keys of the file; `a.b` is the key b of a."""

    def change(content):
        for key, value in values.items():
            *outer, last = key.split("__")
            part = content
            for name in outer:
                part = part[name]
            part[last] = value

    return change


def split(pattern, **options):
    words = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"} | options
    return changed(pre_tokenizer={"type": "Sequence", "pretokenizers": [words]})


MISTAKES = {
    "normalizer": (changed(normalizer={"type": "Own"}), "`normalizer` must be one of .*'Own'"),
    "inside": (
        changed(normalizer={"type": "Sequence", "normalizers": [{"type": "ByteLevel"}]}),
        "`normalizer` must be one of .*'ByteLevel'",
    ),
    "option": (changed(normalizer={"type": "NFC", "more": 1}), "`NFC.more` is not supported"),
    "charsmap": (
        changed(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        "`precompiled_charsmap` must be a table of SentencePiece",
    ),
    "base64": (
        changed(normalizer={"type": "Precompiled", "precompiled_charsmap": "?"}),
        "`Precompiled.precompiled_charsmap` must be base64",
    ),
    "words": (
        changed(pre_tokenizer={"type": "UnicodeScripts"}),
        "`pre_tokenizer` must be one of .*'UnicodeScripts'",
    ),
    "lookbehind": (split(r"(?<=a)b"), r"not supported at its character 2. Received: '\(\?<=a\)b'"),
    "possessive": (split("a++"), "not supported at its character 3"),
    "lookahead": (split(r"a(?!b)|c"), r"`\(\?!\\S\)` is only supported in"),
    "empty": (split("a*"), "must not match an empty text"),
    "behavior": (split("a", behavior="Odd"), "`Split.behavior` must be 'Isolated' or"),
    "invert": (split("a", behavior="Contiguous", invert=True), "`invert` is only supported"),
    "model": (changed(model__type="WordLevel"), "`model` must be one of .*'WordLevel'"),
    "dropout": (changed(model__dropout=0.1), "`BPE.dropout` must be None .* dropout=0.1"),
    "suffix": (changed(model__end_of_word_suffix="</w>"), "`BPE.end_of_word_suffix` must be"),
    "characters": (
        changed(pre_tokenizer={"type": "Whitespace"}),
        "`model`: BPE is only supported with the pre-tokenizer ByteLevel",
    ),
    "vocabulary": (changed(model__vocab=[3]), "`model.vocab` must be a list of tokens and scores"),
    "flag": (
        changed(added_tokens=[{"id": 0, "content": "<s>", "lstrip": 1}]),
        "Options of `added_tokens` must be true or false",
    ),
    "processor": (changed(post_processor={"type": "Own"}), "`post_processor of .* must be one of"),
    "no frame": (
        changed(post_processor={"type": "TemplateProcessing", "single": []}),
        "`post_processor` must produce texts with at most a start and an end",
    ),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roberta")
    trained("roberta", folder)
    return (folder / "tokenizer.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_take_one_line(name, file, tmp_path):
    change, message = MISTAKES[name]
    content = json.loads(file)
    change(content)
    write_json(tmp_path / "tokenizer.json", content)
    assert "tokenizer.json" in refused_in_one_line(message, read_tokenizer, tmp_path)


def test_no_file(tmp_path):
    message = f"{tmp_path}: no tokenizer file \\(tokenizer.json, vocab.txt, vocab.json with merges"
    refused_in_one_line(message, read_tokenizer, tmp_path)
    tokens = file_tokens({"model": {"vocab": {"a": 0, "b": 2}}})
    assert tokens == ["a", "[unused id 1]", "b"]

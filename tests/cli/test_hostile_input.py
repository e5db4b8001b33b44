"""Input that was made to harm: status 2 and one line, before memory or time is spent."""

import gzip
import io

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow

DIGITS = "9" * 5_000
LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(40)
)
TRAIN = ("train", "--preset", "g2p_small", "--out", "run", "--data", "words.tsv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdef"), 5)) for _ in range(90)]
    (tmp_path / "words.tsv").write_text("".join(f"{word}\t{' '.join(word)}\n" for word in words))
    return tmp_path


def refused(result, message):
    status, _, error = result
    assert status == 2, error[-2000:]
    assert message in error
    assert error.count("\n") == 1, error[:2000]
    assert len(error) < 2_000


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.seed=2001-09-09", "line 1 has a value of type 'timestamp'"),
        ("training.seed=!!binary aGk=", "line 1 has a value of type 'binary'"),
        ('data.valid=["\\0.tsv"]', "'\\x00.tsv' is not a valid file name."),
        (f"training.seed={DIGITS}", "has a number with too many digits"),
        (f"training.seed={2**64}", "`seed` must be below 2**63"),
        ("training.learning_rate=1e999", "`learning_rate` must be a finite number"),
        ("training.seed=" + "[" * 3_000 + "]" * 3_000, "nested too deeply"),
        ("training.seed=&a [*a]", "an alias must not contain itself"),
        ("model.num_layers=1000000000", "at most 1,000 layers of a model"),
        ("model.hidden_dim=1000000000", "at most 12,000,000,000 parameters of a model"),
        (f"model.hidden_dim={2**64}", "`hidden_dim` must be less than 2**63"),
        ("training.cpu_shards=2000", "`cpu_shards` must be at most 256."),
        ("decoding.beams=1000000000", "at most 1,024 beams"),
        ("decoding.max_length=1000000000", "at most 262,144 tokens of all hypotheses of a text"),
        ("decoding.no_repeat_ngram=1000000000", "at most 256 tokens of `no_repeat_ngram`"),
        ("init=runs/other", "--set cannot set the init; use --init."),
        ("preset=g2p_small", "--set cannot set the preset; use --preset."),
        ("decoding.forced_end_is_free=[1]", "`forced_end_is_free` must be true or false."),
    ],
)
def test_settings(keras_attn, folder, setting, message):
    refused(keras_attn(*TRAIN, "--set", setting), message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LAUGHS, "values of YAML, aliases written out, are accepted"),
        ("[" * 3_000 + "]" * 3_000, "nested too deeply"),
        (f"training: {{seed: {DIGITS}}}", "line 1 has a number with too many digits"),
        ("training: {seed: 2001-09-09}", "line 1 has a value of type 'timestamp'"),
        ("#" * (2 << 20), "at most 1,048,576 bytes of YAML"),
    ],
)
def test_files_of_settings(keras_attn, folder, content, message):
    (folder / "run.yaml").write_text(content)
    refused(keras_attn("train", "--config", "run.yaml", "--out", "run"), message)


@pytest.mark.parametrize("option", ["--steps", "--batch-tokens", "--seed"])
def test_numbers_of_5000_digits(keras_attn, folder, option):
    refused(keras_attn(*TRAIN, option, DIGITS), "…")


def test_compressed_zeros(keras_attn, folder, monkeypatch):
    """One line without an end, and empty lines without an end."""
    (folder / "words.tsv").write_bytes(gzip.compress(bytes(40_000_000), 1))
    refused(keras_attn(*TRAIN), "words.tsv: at most 16,777,216 bytes of a line are accepted")
    monkeypatch.setenv("KERAS_ATTN_MAX_DECOMPRESSED_BYTES", "500000")
    (folder / "words.tsv").write_bytes(gzip.compress(b"a\ta\n" * 200_000, 1))
    refused(keras_attn(*TRAIN), "words.tsv: at most 500,000 bytes of a compressed file")
    monkeypatch.delenv("KERAS_ATTN_MAX_DECOMPRESSED_BYTES")
    (folder / "words.tsv").write_bytes(gzip.compress(b"a\t%b\n" % (b"a" * 4_000) * 5_000, 9))
    refused(keras_attn(*TRAIN), "words.tsv: at most 200 bytes for each byte of a compressed file")


def test_the_first_malformed_line_is_told_before_the_rest_is_read(keras_attn, folder, monkeypatch):
    """What stands behind it would exceed the limit."""
    monkeypatch.setenv("KERAS_ATTN_MAX_DECOMPRESSED_BYTES", "2000000")
    (folder / "words.tsv").write_bytes(gzip.compress(b"\n" * 5_000_000, 1))
    refused(keras_attn(*TRAIN), "words.tsv, line 1, column 1: expected source<TAB>target")
    for name in ("source", "target"):
        (folder / name).write_bytes((folder / "words.tsv").read_bytes())
    aligned = (*TRAIN[:-1], "source", "target")
    refused(keras_attn(*aligned), "source, line 1, column 1: expected a text")


def test_a_device_is_no_data(keras_attn, folder):
    refused(keras_attn(*TRAIN[:-1], "/dev/zero"), "/dev/zero: at most 16,777,216 bytes of a line")


def test_a_line_without_an_end_on_standard_input(keras_attn, task_folder, monkeypatch):
    monkeypatch.setenv("KERAS_ATTN_MAX_LINE_BYTES", "1000")

    class Input:
        buffer = io.BytesIO(b"abc\n" + b"a" * 5_000)
        isatty = bool

    monkeypatch.setattr("sys.stdin", Input)
    status, output, error = keras_attn("predict", task_folder)
    assert (status, output.count("\n")) == (2, 1)
    assert "standard input, line 2: at most 1,000 bytes of a line are accepted" in error


@pytest.mark.parametrize(
    "text", ["[" * 50_000 + "]" * 50_000, '{"cluster": ' + DIGITS + "}", '{"cluster": 1e999}']
)
def test_workers_of_the_environment(keras_attn, folder, monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    refused(keras_attn(*TRAIN, "--strategy", "multi_worker"), "TF_CONFIG must be JSON such as")


@pytest.mark.parametrize("port", [DIGITS, "0", "65536", "٣", "-1"])
def test_ports_of_workers(keras_attn, folder, monkeypatch, port):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    arguments = ("--workers", f"a:{port},b:2", "--worker-index", "0")
    refused(keras_attn(*TRAIN, *arguments), "A worker must be given as host:port.")


def test_beams_of_a_prediction(keras_attn, task_folder):
    refused(
        keras_attn("predict", task_folder, "abc", "--beams", "1000000000"), "at most 1,024 beams"
    )
    options = ("--sample", "--samples", "1000000000")
    refused(keras_attn("predict", task_folder, "abc", *options), "at most 1,024 beams")
    options = ("--sample", "--samples", "1000", "--set", "decoding.max_length=1000")
    refused(
        keras_attn("predict", task_folder, "abc", *options),
        "`samples`=1000, `max_length`=1000: at most 262,144 tokens",
    )


def test_a_long_token_of_a_vocabulary(folder):
    from keras_attn.tokenizers import WordPieceTokenizer
    from keras_attn.validation import UserError

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a" * 300]
    (folder / "vocab.txt").write_text("\n".join(tokens))
    with pytest.raises(UserError, match="vocab.txt: A token has at most 256 bytes.") as caught:
        WordPieceTokenizer.from_file(folder / "vocab.txt")
    assert len(str(caught.value)) < 500
    (folder / "vocab.txt").write_text("\n".join([*tokens[:-1], "a" * 256, "##" + "b" * 256]))
    assert WordPieceTokenizer.from_file(folder / "vocab.txt").vocabulary_size == 7


def test_a_search_of_hostile_settings(keras_attn, folder):
    (folder / "space.yaml").write_text(LAUGHS)
    options = ("--preset", "g2p_small", "--data", "words.tsv", "--out", "tuning")
    refused(keras_attn("tune", *options, "--space", "space.yaml"), "values of YAML")

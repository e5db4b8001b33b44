"""Marian checkpoints: the ids, logits and texts of `transformers`, and what does not fit."""

import json

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from safetensors.numpy import load_file
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_attn.convert import convert_huggingface, from_huggingface
from keras_attn.generation import beam_search, greedy_search
from keras_attn.ops import sinusoidal_positions
from keras_attn.tasks import Seq2SeqTask
from tests.convert.made import (
    GOLDEN,
    WEIGHTS,
    change_json,
    change_tensors,
    check_mistake,
    config,
    converted,
    copy_of,
    generation,
    loaded,
    lose_shard,
    mistakes,
    removed,
    rows_of,
    shard,
    tensors,
    tokenizer_config,
    truncate,
    without,
)
from tests.generation.toy_models import compiled
from tests.harness import arrays_of

pytestmark = pytest.mark.tensorflow

MARIAN = {name: GOLDEN / name for name in ("marian", "marian_separate")}
VOCABULARIES = {
    "marian": ("vocab.json", "vocab.json"),
    "marian_separate": ("vocab.json", "target_vocab.json"),
}
CHECKPOINT = MARIAN["marian"]  # of what is spoiled
START, END = 1, 2
NEW_TOKENS = 6


@pytest.fixture(scope="module", params=MARIAN)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def golden(version):
    return arrays_of(GOLDEN / f"{version}_outputs.npz")


@pytest.fixture(scope="module")
def task(version):
    return converted(MARIAN[version])


@pytest.fixture
def separate(tmp_path):
    return copy_of(MARIAN["marian_separate"], tmp_path / "checkpoint")


class Ids:
    """From ids of the checkpoint to ours: the files' order, with special tokens first."""

    def __init__(self, path):
        theirs = json.loads(path.read_text())
        order = sorted(theirs, key=theirs.get)
        rest = [token for token in order if token not in ("<pad>", "</s>", "<unk>")]
        ours = ["<pad>", None, "</s>", "<unk>", *rest]
        self.theirs = [theirs["<pad>"], *(theirs[token] for token in ours[2:])]
        """Their id of each of ours, from the start on."""

    def ours(self, ids):
        """0 for -1."""
        table = np.zeros(len(self.theirs) + 1, "int32")
        table[self.theirs] = np.arange(1, len(self.theirs) + 1)
        return np.where(ids < 0, 0, table[ids])


def ids_of(version):
    return [Ids(MARIAN[version] / name) for name in VOCABULARIES[version]]


def logits_of(task, golden, version):
    source, target = ids_of(version)
    inputs = {
        "source_ids": source.ours(golden["source_ids"]),
        "target_ids": target.ours(golden["target_ids"]),
    }
    return np.asarray(task.backbone(inputs))


def expected_logits(golden, version):
    return golden["logits"][..., ids_of(version)[1].theirs]


def test_states_of_the_encoder_are_those_of_transformers(task, golden, version):
    ids = ids_of(version)[0].ours(golden["source_ids"])
    assert (ids > 0).sum(1).tolist() == [19, 7, 1, 12]
    found = np.asarray(task.backbone.encode(ids))
    np.testing.assert_allclose(found[ids > 0], golden["encoded"][ids > 0], atol=1e-4)
    assert np.ptp(golden["encoded"], axis=(0, 1)).min() > 0.5


def test_logits_are_those_of_transformers(task, golden, version):
    logits, expected = logits_of(task, golden, version), expected_logits(golden, version)
    assert (logits[..., 0] == -3e4).all()
    first = 1
    if version == "marian_separate":  # whose banned padding has no share of the probabilities
        assert (logits[..., START] < -2e4).all()
        first = 2
    np.testing.assert_allclose(logits[..., first:], expected[..., first - 1 :], atol=1e-4)
    assert np.ptp(expected, axis=(0, 1)).min() > 0.5


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_ids_of_texts_are_those_of_transformers(task, golden, version, side):
    tokenizer = (task.source_tokenizer, task.target_tokenizer)[side]
    texts, expected = (golden[("", "target_")[side] + name] for name in ("texts", "text_ids"))
    texts, found = texts.tolist(), tokenizer.tokenize(tf.constant(texts)).to_list()
    for text, ours, theirs in zip(texts, found, rows_of(expected), strict=True):
        assert [*ours, END] == ids_of(version)[side].ours(theirs).tolist(), text
    tokens = {tokenizer.vocabulary[id_] for row in found for id_ in row}
    assert {">>fra<<", "😀", "ж", "中国", "<unk>", "</s>"} < tokens


def test_texts_are_written_as_transformers_writes_them(task, golden, version):
    ids = ids_of(version)[1].ours(golden["beams"])
    found = [text.decode() for text in task.target_tokenizer.detokenize(ids).numpy()]
    assert found == golden["written"].tolist()
    assert sum(" " in text for text in found) >= 3


def test_generated_ids_are_those_of_transformers(task, golden, version):
    """By the task, with the options of the checkpoint, and by greedy search."""
    source, target = ids_of(version)
    source_ids = tf.constant(source.ours(golden["sources"]))
    expected = target.ours(golden["beams"])
    assert (np.asarray(expected) == END).sum(1).tolist() == [1] * len(expected)
    lengths = (expected > 0).sum(1)
    assert len({tuple(row) for row in expected}) >= 50
    assert set(lengths) == set(range(1, NEW_TOKENS + 1))
    assert (lengths == NEW_TOKENS).sum() >= 3  # where the end is forced
    found = task.serving_functions(1)["token_ids"].function(source_ids=source_ids)
    np.testing.assert_array_equal(np.asarray(found["token_ids"]), expected)

    def search(ids):
        state = task.backbone.initial_state(ids, NEW_TOKENS)
        return greedy_search(task.backbone.step, state, START, END, NEW_TOKENS)

    greedy = np.asarray(compiled(search)(source_ids).token_ids)[:, 0]
    np.testing.assert_array_equal(greedy, target.ours(golden["greedy"]))
    assert (greedy != expected).any(1).sum() >= 10


def test_a_forced_end_is_free(task, golden, version):
    """What would come out if it were not is something else."""
    source, target = ids_of(version)
    state = task.backbone.initial_state(source.ours(golden["sources"]), None, 4)
    form = {"length_penalty": 1.0, "length_penalty_form": "length", "stopping": "heuristic"}
    found = beam_search(
        task.backbone.step, state, 4, START, END, NEW_TOKENS, forbidden_ids=(0, START), **form
    )
    found = np.asarray(found.token_ids)[:, 0]
    assert 1 <= (found != target.ours(golden["beams"])).any(1).sum() <= 50


def test_what_the_task_is(task, version):
    assert isinstance(task, Seq2SeqTask)
    config = task.backbone.get_config()
    expected = {"marian": ("silu", True), "marian_separate": ("relu", False)}[version]
    assert (config["activation"], config["scale_embedding"]) == expected
    names = ("num_layers", "num_heads", "intermediate_dim", "decoder_layers", "decoder_heads")
    assert [config[name] for name in names] == [3, 5, 37, 2, 3]
    assert config["decoder_intermediate_dim"] == 29
    decoding = task.decoding
    assert (decoding.beams, decoding.max_length, decoding.max_source_length) == (4, NEW_TOKENS, 41)
    assert (decoding.stopping, decoding.length_penalty_form) == ("heuristic", "length")
    assert decoding.forced_end_is_free
    sizes = [each.vocabulary_size for each in (task.source_tokenizer, task.target_tokenizer)]
    assert (sizes[0] == sizes[1]) == (version == "marian")
    assert task.target_tokenizer.vocabulary[:4] == ["<pad>", "<s>", "</s>", "<unk>"]


@pytest.mark.slow
def test_a_saved_task_is_the_same(tmp_path):
    task = from_huggingface(MARIAN["marian_separate"])
    again = loaded(task, tmp_path)
    assert again.decoding == task.decoding
    texts = ["The quick fox", "", ">>fra<< the dog"]
    expected = task.predict(texts, beams=1)
    assert again.predict(texts, beams=1) == expected
    assert len(set(expected)) >= 2


def test_generation_reads_the_options_of_older_files(folder):
    (folder / "generation_config.json").unlink()
    values = {"num_beams": 3, "length_penalty": 0.5, "early_stopping": True, "max_length": 21}
    change_json(folder / "config.json", forced_eos_token_id=..., no_repeat_ngram_size=2, **values)
    decoding = from_huggingface(folder).decoding
    assert (decoding.beams, decoding.length_penalty, decoding.stopping) == (3, 0.5, "early")
    assert (decoding.max_length, decoding.no_repeat_ngram) == (20, 2)
    assert not decoding.forced_end_is_free


def with_copies(tensors):
    shared = tensors["model.shared.weight"]
    table = np.asarray(sinusoidal_positions(41, 15, interleaved=False))
    return tensors | {
        "model.encoder.embed_tokens.weight": shared,
        "model.decoder.embed_tokens.weight": shared,
        "lm_head.weight": shared,
        "model.encoder.embed_positions.weight": table,
        "model.decoder.embed_positions.weight": table,
    }


def of_older_versions(folder):
    change_json(
        folder / "config.json",
        tie_word_embeddings=...,
        decoder_vocab_size=...,
        num_hidden_layers=3,
        normalize_before=False,
        normalize_embedding=False,
        static_position_embeddings=True,
        add_bias_logits=False,
        classif_dropout=0.0,
    )
    (folder / "tokenizer_config.json").unlink()


def renamed(tensors):
    return {name.removeprefix("model."): tensor for name, tensor in tensors.items()}


def one_of_the_names(tensors):
    return tensors | {"lm_head.weight": tensors.pop("model.shared.weight")}


SAME = {
    "copies, and positions": tensors(with_copies),
    "names without a prefix": tensors(renamed),
    "another name": tensors(one_of_the_names),
    "shards": shard,
    "older versions": of_older_versions,
}


@pytest.mark.parametrize("name", SAME)
def test_other_layouts_of_the_same(name, folder):
    SAME[name](folder)
    task, notes = convert_huggingface(folder)
    assert notes == ()
    golden = arrays_of(GOLDEN / "marian_outputs.npz")
    found = logits_of(task, golden, "marian")[..., 1:]
    np.testing.assert_allclose(found, expected_logits(golden, "marian"), atol=1e-4)


def test_an_output_that_is_not_tied(separate):
    change_json(separate / "config.json", tie_word_embeddings=False)
    change_json(separate / "generation_config.json", renormalize_logits=...)
    table = load_file(separate / WEIGHTS)["model.decoder.embed_tokens.weight"]
    change_tensors(separate, lambda tensors: tensors | {"lm_head.weight": 2 * table})
    golden = arrays_of(GOLDEN / "marian_separate_outputs.npz")
    bias = load_file(separate / WEIGHTS)["final_logits_bias"]
    expected = (2 * golden["logits"] - bias)[..., ids_of("marian_separate")[1].theirs]
    found = logits_of(from_huggingface(separate), golden, "marian_separate")
    np.testing.assert_allclose(found[..., 1:], expected, atol=2e-4)


def test_a_bias_that_is_not_there_is_zero(folder):
    golden = arrays_of(GOLDEN / "marian_outputs.npz")
    bias = load_file(folder / WEIGHTS)["final_logits_bias"]
    without("final_logits_bias")(folder)
    expected = (golden["logits"] - bias)[..., ids_of("marian")[1].theirs]
    found = logits_of(from_huggingface(folder), golden, "marian")
    np.testing.assert_allclose(found[..., 1:], expected, atol=1e-4)


def test_rows_without_a_token_come_last(folder):
    size = len(json.loads((folder / "vocab.json").read_text()))
    change_json(folder / "config.json", vocab_size=size + 3, decoder_vocab_size=size + 3)

    def longer(tensors):
        bias, table = tensors["final_logits_bias"], tensors["model.shared.weight"]
        return tensors | {
            "final_logits_bias": np.pad(bias, ((0, 0), (0, 3))),
            "model.shared.weight": np.pad(table, ((0, 3), (0, 0)), constant_values=7),
        }

    change_tensors(folder, longer)
    model = from_huggingface(folder).backbone
    rows = np.asarray(model.target_embedding.embeddings)
    assert (rows == 7).all(1).tolist() == [False] * (size + 1) + [True] * 3


def test_tidied_texts_are_a_note(folder):
    change_json(folder / "tokenizer_config.json", clean_up_tokenization_spaces=True)
    (note,) = convert_huggingface(folder).notes
    assert "`clean_up_tokenization_spaces` is not used" in note


def renumbered(change):
    """Changes the vocabulary, a dict of tokens and ids."""

    def spoil(folder):
        path = folder / "vocab.json"
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return spoil


def replaced(token):
    """A vocabulary with another token in the place of one."""
    return lambda ids: {("other" if key == token else key): ids[key] for key in ids}


def changed_pieces(change):
    def spoil(folder):
        model = ModelProto.FromString((folder / "source.spm").read_bytes())
        change(model)
        (folder / "source.spm").write_bytes(model.SerializeToString())

    return spoil


def byte_pieces(model):
    model.pieces[5].type = model.SentencePiece.Type.BYTE


def writing_rules(model):
    model.denormalizer_spec.precompiled_charsmap = b"abc"


def with_trained_positions(tensors):
    return tensors | {"model.encoder.embed_positions.weight": np.ones((41, 15), "float32")}


def with_another_output(tensors):
    return tensors | {"lm_head.weight": tensors["model.shared.weight"] + 1}


MISTAKES = {
    "pre-norm": (config(normalize_before=True), "`normalize_before` must be False"),
    "norm of embeddings": (config(normalize_embedding=True), "`normalize_embedding` must be False"),
    "learned positions": (
        config(static_position_embeddings=False),
        "`static_position_embeddings` must be True",
    ),
    "activation": (config(activation_function="prelu"), "`activation_function` must be one of"),
    "odd values": (config(d_model="four"), "config.json: `d_model` must be an integer, 0 or more"),
    "odd truth": (config(scale_embedding="yes"), "`scale_embedding` must be true or false"),
    "heads": (config(decoder_attention_heads=4), "The number of heads must divide `d_model`"),
    "other names": (config(num_hidden_layers=4), "`num_hidden_layers` must be 3. .*_layers=4"),
    "untied": (config(tie_word_embeddings=False), "must be true if embeddings are shared"),
    "unlike sizes": (config(decoder_vocab_size=9), "`decoder_vocab_size` must be `vocab_size`"),
    "start": (config(decoder_start_token_id=5), "`decoder_start_token_id` must be 71, as in vocab"),
    "end": (generation(eos_token_id=3), "generation_config.json: `eos_token_id` must be 0, as in"),
    "forced": (generation(forced_eos_token_id=3), "`forced_eos_token_id` must be 0"),
    "banned": (generation(bad_words_ids=[[7]]), "`bad_words_ids` must be ..71.., the padding"),
    "begin": (generation(forced_bos_token_id=3), "`forced_bos_token_id` must be None or missing"),
    "beams": (generation(num_beams=0), "generation_config.json: `num_beams` must be a positive"),
    "runs": (generation(no_repeat_ngram_size=-1), "`no_repeat_ngram_size` must be an integer"),
    "stopping": (generation(early_stopping="soon"), "`early_stopping` must be one of False, True"),
    "renormalized": (
        generation(renormalize_logits=True, no_repeat_ngram_size=2),
        "`no_repeat_ngram_size` must be 0",
    ),
    "fewer layers": (config(encoder_layers=2), "left over: model.encoder.layers.2.* and 13 more"),
    "more layers": (config(decoder_layers=3), "missing: model.decoder.layers.2.* and 23 more"),
    "wrong size": (
        config(encoder_ffn_dim=36),
        r"of another shape: .*fc1.bias .37,. instead of .36",
    ),
    "no tensor": (
        without("final_layer_norm.bias"),
        "missing: .*final_layer_norm.bias.* and 2 more.$",
    ),
    "two embeddings": (
        tensors(with_another_output),
        "lm_head.weight must be the same as model.shared.weight",
    ),
    "trained positions": (
        tensors(with_trained_positions),
        "embed_positions.weight must contain sin",
    ),
    "missing shard": (lose_shard, "model-00002-of-00002.safetensors: no such file"),
    "cut JSON": (lambda f: truncate(f / "vocab.json"), "vocab.json: valid JSON is expected"),
    "small embedding": (
        renumbered(lambda ids: ids | {"new": len(ids)}),
        "vocab.json: the vocabulary is larger than the embedding. Received: tokens=73, rows=72",
    ),
    "holes": (renumbered(lambda ids: ids | {"new": 99}), "the ids must be 0 to 72, each once"),
    "no unknown": (
        renumbered(replaced("<unk>")),
        "vocab.json: the vocabulary must contain '<unk>'",
    ),
    "start in it": (
        renumbered(lambda ids: {("<s>" if ids[key] == 5 else key): ids[key] for key in ids}),
        "the vocabulary must not contain '<s>'",
    ),
    "no pieces": (removed("source.spm"), "source.spm: no such file"),
    "no vocabulary": (removed("vocab.json"), "vocab.json: no such file"),
    "cut pieces": (lambda f: truncate(f / "target.spm"), "target.spm: a SentencePiece model is"),
    "bytes": (changed_pieces(byte_pieces), "source.spm: pieces of single bytes are not supported"),
    "writing": (
        changed_pieces(writing_rules),
        "source.spm: denormalization rules are not supported",
    ),
    "no other vocabulary": (
        tokenizer_config(separate_vocabs=True),
        "target_vocab.json: no such file",
    ),
    "unknown end": (tokenizer_config(eos_token="<end>"), "`eos_token` must be '</s>'"),
    "added token": (
        tokenizer_config(extra_special_tokens=["<S>"]),
        "added tokens are not supported. Received: tokens=.'<S>'",
    ),
    "sampled pieces": (
        tokenizer_config(sp_model_kwargs={"enable_sampling": True}),
        "`sp_model_kwargs` must be empty",
    ),
}

test_mistakes_take_one_line = mistakes(MISTAKES)


def test_separate_vocabularies_need_separate_embeddings(separate):
    check_mistake(
        config(share_encoder_decoder_embeddings=True, vocab_size=46),
        "separate vocabularies need `share_encoder_decoder_embeddings` to be false",
        separate,
    )


def test_pieces_are_those_of_the_library(task, version):
    """A vocabulary numbers them, and changes none."""
    judge = sentencepiece.SentencePieceProcessor(model_file=str(MARIAN[version] / "source.spm"))
    texts = ["the fox", "  dogs, DOGS\tand cats ", "naß ﬁne é", ""]
    found = task.source_tokenizer.tokenize(tf.constant(texts)).to_list()
    for text, ids in zip(texts, found, strict=True):
        for id_, piece in zip(ids, judge.encode(text, out_type=str), strict=True):
            assert task.source_tokenizer.vocabulary[id_] in (piece, "<unk>")

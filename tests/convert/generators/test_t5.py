"""T5 checkpoints: the ids, logits and texts of `transformers`, and what does not fit."""

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_attn.convert import convert_huggingface, from_huggingface
from keras_attn.tasks import Seq2SeqTask
from tests.convert.made import (
    GOLDEN,
    T5,
    assert_generated,
    change_json,
    change_tensors,
    config,
    converted,
    copy_of,
    loaded,
    mistakes,
    removed,
    rows_of,
    search,
    shard,
    tensors,
    tokenizer_config,
    truncate,
    without,
)
from tests.generation.toy_models import compiled
from tests.harness import arrays_of

pytestmark = pytest.mark.tensorflow

CHECKPOINT = T5["t5"]  # of what is spoiled
START, END = 1, 2  # 0 and 1 in the files
NEW_TOKENS = 32


@pytest.fixture(scope="module", params=T5)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def golden(version):
    return arrays_of(GOLDEN / f"{version}_outputs.npz")


@pytest.fixture(scope="module")
def task(version):
    return converted(T5[version])


def logits_of(task, golden):
    inputs = {"source_ids": golden["source_ids"] + 1, "target_ids": golden["target_ids"] + 1}
    return np.asarray(task.backbone(inputs))


def test_logits_are_those_of_transformers(task, golden):
    assert (golden["source_ids"] >= 0).sum(1).tolist() == [19, 7, 1, 12]
    logits = logits_of(task, golden)
    np.testing.assert_allclose(logits[..., 1:], golden["logits"], atol=1e-4)
    assert np.ptp(golden["logits"], axis=(0, 1)).min() > 0.1
    assert (logits[..., 0] == -3e4).all()


def test_ids_of_texts_are_those_of_transformers(task, golden):
    texts = golden["texts"].tolist()
    found = task.source_tokenizer.tokenize(tf.constant(texts)).to_list()
    for text, ours, theirs in zip(texts, found, rows_of(golden["text_ids"]), strict=True):
        assert [*ours, END] == (theirs + 1).tolist(), text
    first_sentinel = task.source_tokenizer.vocabulary_size - 5
    assert sum(id_ >= first_sentinel for row in found for id_ in row) == 4
    assert END in found[-1]  # spelled out in the last text


def test_texts_without_special_tokens_are_read_as_the_library_reads_them(task, version):
    judge = sentencepiece.SentencePieceProcessor(model_file=str(T5[version] / "spiece.model"))
    texts = ["the fox", "  dogs, DOGS\tand cats ", "naß ﬁne é 中", "<s> <pad>", ""]
    ids = task.source_tokenizer.tokenize(tf.constant(texts))
    assert ids.to_list() == [[id_ + 1 for id_ in row] for row in judge.encode(texts)]
    found = task.target_tokenizer.detokenize(ids).numpy()
    assert found[0].decode() == "the fox"
    assert "<unk>" in found[2].decode()


@pytest.mark.parametrize("name", ["greedy", "beams"])
def test_generated_ids_are_those_of_transformers(task, golden, name):
    options = {"start_id": START, "end_id": END, "max_length": NEW_TOKENS}
    beams = {"greedy": 1, "beams": 4}[name]

    def generate(source_ids):
        state = task.backbone.initial_state(source_ids, NEW_TOKENS, beams)
        return search(task.backbone.step, state, beams, **options)

    found = compiled(generate)(tf.constant(golden["sources"] + 1))
    assert_generated(found, golden[name] + 1, END)


def test_what_the_task_is(task, version):
    assert isinstance(task, Seq2SeqTask)
    config = task.backbone.get_config()
    expected = {"t5": ("relu", False, True), "t5_v1_1": ("gelu_tanh", True, False)}[version]
    assert (config["activation"], config["gated"], config["tie_output"]) == expected
    assert (config["num_layers"], config["decoder_layers"]) == (3, 2)
    assert task.decoding.beams == 1
    assert task.source_tokenizer is task.target_tokenizer
    tokens = task.source_tokenizer.vocabulary
    assert tokens[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert tokens[-2:] == ["<extra_id_1>", "<extra_id_0>"]


def test_sentinels_that_are_generated_are_written(task):
    tokens = task.target_tokenizer.vocabulary
    ids = [tokens.index("<extra_id_0>"), *task.target_tokenizer.tokenize(["fox"]).to_list()[0]]
    ids += [tokens.index("<extra_id_1>"), END]
    found = task.target_tokenizer.detokenize(tf.constant([ids])).numpy()[0].decode()
    assert found.replace(" ", "") == "<extra_id_0>fox<extra_id_1>"


def test_a_saved_task_is_the_same(task, tmp_path):
    texts = ["The quick <extra_id_0> fox", "", "ist naß"]
    again = loaded(task, tmp_path)
    decoding = task.decoding.replace(max_length=9)
    one, other = (
        Seq2SeqTask(each.backbone, each.source_tokenizer, each.target_tokenizer, decoding)
        for each in (task, again)
    )
    assert one.predict(texts) == other.predict(texts)
    assert any(one.predict(texts))
    assert again.input_ids(tf.constant(texts)).numpy().tolist() == (
        task.input_ids(tf.constant(texts)).numpy().tolist()
    )


def with_copies(tensors):
    shared = tensors["shared.weight"]
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    return tensors | {
        "encoder.embed_tokens.weight": shared,
        "decoder.embed_tokens.weight": shared,
        "lm_head.weight": shared,
        unused: np.zeros((8, 5), "float32"),
    }


def of_older_versions(folder):
    change_json(
        folder / "config.json",
        dense_act_fn=...,
        is_gated_act=...,
        scale_decoder_outputs=...,
        tie_word_embeddings=...,
        n_positions=512,
        output_past=True,
        task_specific_params={"summarization": {"prefix": "summarize: "}},
    )
    (folder / "tokenizer.json").unlink()


SAME = {
    "copies of the embedding": tensors(with_copies),
    "shards": shard,
    "older versions": of_older_versions,
}


@pytest.mark.parametrize("name", SAME)
def test_other_layouts_of_the_same(name, folder):
    SAME[name](folder)
    task, notes = convert_huggingface(folder)
    assert notes == ()
    golden = arrays_of(GOLDEN / "t5_outputs.npz")
    np.testing.assert_allclose(logits_of(task, golden)[..., 1:], golden["logits"], atol=1e-4)


def test_tokenizer_json_alone_is_read_alike(folder):
    (folder / "spiece.model").unlink()
    golden = arrays_of(GOLDEN / "t5_outputs.npz")
    texts = golden["texts"].tolist()
    found, expected = (
        from_huggingface(one).source_tokenizer.tokenize(tf.constant(texts)).to_list()
        for one in (folder, T5["t5"])
    )
    assert found == expected
    assert len(found) > 5


def test_an_output_as_in_older_versions(tmp_path):
    folder = copy_of(T5["t5_v1_1"], tmp_path / "checkpoint")
    change_json(folder / "config.json", scale_decoder_outputs=..., tie_word_embeddings=False)
    golden = arrays_of(GOLDEN / "t5_v1_1_outputs.npz")
    found = logits_of(from_huggingface(folder), golden)[..., 1:]
    np.testing.assert_allclose(found, golden["logits"], atol=1e-4)


def test_an_output_that_is_not_there_is_the_embedding(tmp_path):
    folder = copy_of(T5["t5_v1_1"], tmp_path / "checkpoint")
    without("lm_head.weight")(folder)
    model = from_huggingface(folder).backbone
    embedding, output = (
        np.asarray(one.embeddings) for one in (model.source_embedding, model.output_embedding)
    )
    np.testing.assert_allclose(output, embedding * 15**0.5, rtol=1e-6)


def test_a_hundred_sentinels_unless_told(folder):
    (folder / "tokenizer_config.json").unlink()
    change_json(folder / "config.json", vocab_size=203)
    change_tensors(
        folder, lambda t: t | {"shared.weight": np.resize(t["shared.weight"], (203, 15))}
    )
    tokens = from_huggingface(folder).source_tokenizer.vocabulary
    assert tokens[-1] == "<extra_id_0>"
    assert tokens[-100] == "<extra_id_99>"


def fast(**values):
    def change(folder):
        (folder / "spiece.model").unlink()
        change_json(folder / "tokenizer.json", **values)

    return change


def with_another_output(tensors):
    return tensors | {"lm_head.weight": tensors["shared.weight"] + 1}


def other_pieces(folder):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f"] * 9),
        model_prefix=str(folder / "other"),
        vocab_size=12,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "other.model").rename(folder / "spiece.model")


MISTAKES = {
    "encoder alone": (config(is_encoder_decoder=False), "`is_encoder_decoder` must be True"),
    "start": (config(decoder_start_token_id=5), "`decoder_start_token_id` must be 0"),
    "activation": (config(feed_forward_proj="gated-mish"), "`feed_forward_proj` must be one of"),
    "other gates": (config(is_gated_act="odd"), "`is_gated_act` must be (True|False)"),
    "other activation": (config(dense_act_fn="odd"), "`dense_act_fn` must be '(relu|gelu_new)'"),
    "a fraction": (config(d_kv=2.5), "config.json: `d_kv` must be an integer, 0 or more"),
    "no buckets": (
        config(relative_attention_num_buckets=1),
        "`relative_attention_num_buckets` must be .* Received: relative_attention_num_buckets=1",
    ),
    "odd values": (config(d_kv="four"), "config.json: `d_kv` must be an integer, 0 or more"),
    "odd truth": (config(scale_decoder_outputs=1.5), "`scale_decoder_outputs` must be true or"),
    "two embeddings": (
        tensors(with_another_output),
        "lm_head.weight must be the same as shared.weight",
    ),
    "no layers": (config(num_layers=0), "config.json: `num_layers` must be"),
    "fewer layers": (config(num_layers=2), "left over: encoder.block.2.* and 5 more"),
    "more layers": (config(num_decoder_layers=3), "missing: decoder.block.2.* and 10 more"),
    "wrong size": (config(d_ff=36), r"of another shape: .*wi.weight .37, 15. instead of .36, 15."),
    "no tensor": (
        without("final_layer_norm"),
        "missing: decoder.final_layer_norm.weight, encoder.final_layer_norm.weight.$",
    ),
    "large vocabulary": (
        tokenizer_config(extra_ids=100),
        "is larger than the embedding. .* rows=127",
    ),
    "no pieces": (removed("spiece.model", "tokenizer.json"), "no tokenizer file"),
    "cut pieces": (lambda f: truncate(f / "spiece.model"), "a SentencePiece model is expected"),
    "other pieces": (other_pieces, "spiece.model: the first pieces must be .'<pad>', '</s>'"),
    "unknown end": (tokenizer_config(eos_token="<end>"), "`eos_token` must be '</s>'"),
    "added token": (
        tokenizer_config(extra_special_tokens=["<S>"]),
        "added tokens are not supported. Received: tokens=.'<S>'",
    ),
    "other model": (fast(model={"type": "BPE"}), "tokenizer.json: `type` must be 'Unigram'"),
    "other normalizer": (fast(normalizer={"type": "NFC"}), "`type` must be 'Precompiled'"),
    "other words": (
        fast(pre_tokenizer={"type": "Punctuation"}),
        "`pre_tokenizer` must be one of .* steps=.'Punctuation'",
    ),
    "odd bytes": (
        fast(normalizer={"type": "Precompiled", "precompiled_charsmap": "?"}),
        "`precompiled_charsmap` must be base64",
    ),
    "odd pieces": (fast(model={"type": "Unigram", "vocab": [3]}), "checkpoint is damaged: TypeE"),
    "odd sentinels": (tokenizer_config(extra_ids=-1), "`extra_ids` must be a whole number"),
}

test_mistakes_take_one_line = mistakes(MISTAKES)

"""GPT-2 checkpoints: the ids, logits and texts of `transformers`, and what does not fit."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.convert import convert_huggingface, from_huggingface
from keras_attn.tasks import CausalLMTask
from tests.convert.made import (
    GPT2,
    WEIGHTS,
    assert_generated,
    change_json,
    config,
    fast,
    loaded,
    mistakes,
    removed,
    rows_of,
    search,
    shard,
    tensors,
    tokenizer_config,
    without,
    write_json,
)
from tests.generation.toy_models import compiled
from tests.harness import assert_close

pytestmark = pytest.mark.tensorflow

CHECKPOINT = GPT2
END = 1  # 0 in the files
NEW_TOKENS = 32


def logits_of(task, golden):
    # -1 is past the end of a text there, 0 here.
    return np.asarray(task.backbone({"token_ids": golden["token_ids"] + 1}))


def test_logits_are_those_of_transformers(task, golden):
    logits, real = logits_of(task, golden), golden["token_ids"] >= 0
    assert real.sum(1).tolist() == [13, 7, 1, 10]
    assert logits.shape[-1] == golden["logits"].shape[-1] + 1
    assert_close(logits[real][:, 1:], golden["logits"][real], atol=1e-4)
    assert np.ptp(golden["logits"][real], axis=0).min() > 0.1
    assert (logits[..., 0] == -3e4).all()


def test_ids_of_texts_are_those_of_transformers(task, golden):
    texts = golden["texts"].tolist()
    found = task.tokenizer.tokenize(tf.constant(texts)).to_list()
    for text, ours, theirs in zip(texts, found, rows_of(golden["text_ids"]), strict=True):
        assert ours == (theirs + 1).tolist(), text
    assert END in found[-1]  # spelled out in the last text


@pytest.mark.parametrize("name", ["greedy", "beams"])
def test_generated_ids_are_those_of_transformers(task, golden, name):
    prompts = golden["prompts"] + 1
    prompts[:, 0] = np.where(prompts.any(1), prompts[:, 0], END)  # an empty one

    def generate(prompt_ids):
        beams = {"greedy": 1, "beams": 4}[name]
        last, state = task.backbone.prefill(prompt_ids, NEW_TOKENS, beams)
        options = {"start_id": last, "end_id": END, "max_length": NEW_TOKENS}
        return search(task.backbone.step, state, beams, **options)

    assert_generated(compiled(generate)(tf.constant(prompts)), golden[name] + 1, END)


def test_texts_go_on_as_there(task, golden):
    """Prompts that are texts: most of the random ids are bytes that are none."""

    def text_of(*ids):
        ids = np.concatenate(ids)
        (text,) = task.tokenizer.detokenize((ids[ids >= 0] + 1)[None]).numpy()
        return text.decode("utf-8", "replace")

    prompts = [text_of(ids) for ids in golden["prompts"]]
    found = task.tokenizer.tokenize(tf.constant(prompts)).to_list()
    same = [
        row
        for row, ids in enumerate(golden["prompts"])
        if found[row] == (ids[ids >= 0] + 1).tolist()
    ]
    assert len(same) > 20
    decoding = task.decoding.replace(max_length=NEW_TOKENS, max_source_length=10)
    longer = CausalLMTask(task.backbone, task.tokenizer, decoding, add_start=False)
    for row, text in zip(same, longer.predict([prompts[row] for row in same]), strict=True):
        assert prompts[row] + text == text_of(golden["prompts"][row], golden["greedy"][row])


def test_what_the_task_is(task):
    assert isinstance(task, CausalLMTask)
    assert task.add_start is False
    assert task.backbone.get_config()["activation"] == "gelu_tanh"
    assert (task.tokenizer.pad_id, task.tokenizer.start_id, task.tokenizer.end_id) == (0, END, END)
    needed = task.decoding.max_source_length + task.decoding.max_length - 1
    assert needed == task.backbone.max_length == 41
    assert len(task.example_texts()) == 3
    assert not np.asarray(task.backbone.embedding.embeddings)[0].any()


def test_a_saved_task_is_the_same(task, tmp_path):
    texts = ["The quick", "", "ist naß"]
    again = loaded(task, tmp_path)
    assert again.predict(texts) == task.predict(texts)
    assert again.add_start is False
    assert any(task.predict(texts))


def with_prefix(tensors):
    tensors = {f"transformer.{name.removeprefix('transformer.')}": t for name, t in tensors.items()}
    mask = np.ones((1, 1, 41, 41), "uint8")
    return tensors | {
        "transformer.h.0.attn.bias": mask,
        "transformer.h.1.attn.masked_bias": np.float32([-1e4]),
        "lm_head.weight": tensors["transformer.wte.weight"],
    }


def without_prefix(tensors):
    return {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}


def old_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    change_json(folder / "tokenizer_config.json", tokenizer_class="GPT2TokenizerFast")


def merges_as_texts(folder):
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    model["merges"] = [" ".join(pair) for pair in model["merges"]]
    change_json(folder / "tokenizer.json", model=model)


SAME = {
    "prefix, masks and head": tensors(with_prefix),
    "no prefix": tensors(without_prefix),
    "shards": shard,
    "older tokenizer files": old_tokenizer,
    "tokenizer.json alone": removed("vocab.json", "merges.txt"),
    "merges as texts": merges_as_texts,
    "no tokenizer_config.json": removed("tokenizer_config.json"),
}


@pytest.mark.parametrize("name", SAME)
def test_other_layouts_of_the_same(name, folder, golden):
    SAME[name](folder)
    task, notes = convert_huggingface(folder)
    assert notes == ()
    real = golden["token_ids"] >= 0
    assert_close(logits_of(task, golden)[real][:, 1:], golden["logits"][real], atol=1e-4)
    found, expected = (
        each.tokenizer.tokenize(tf.constant(["naïve dog"])).to_list()
        for each in (task, from_huggingface(GPT2))
    )
    assert found == expected


def test_a_start_before_every_prompt_where_it_is_asked_for(folder):
    change_json(folder / "tokenizer_config.json", add_bos_token=True)
    task = from_huggingface(folder)
    assert task.input_ids(tf.constant(["dog", ""])).numpy()[:, 0].tolist() == [END, END]
    template = [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A"}}]
    change_json(folder / "tokenizer_config.json", add_bos_token=...)
    change_json(
        folder / "tokenizer.json", post_processor={"type": "TemplateProcessing", "single": template}
    )
    assert from_huggingface(folder).add_start is True


def fast_model(**values):
    def change(folder):
        model = json.loads((folder / "tokenizer.json").read_text())["model"]
        change_json(folder / "tokenizer.json", model=model | values)

    return change


def another_token(folder):
    tokens = json.loads((folder / "vocab.json").read_text())
    write_json(folder / "vocab.json", tokens | {"more": len(tokens)})


MISTAKES = {
    "scaling by the layer": (
        config(scale_attn_by_inverse_layer_idx=True),
        "`scale_attn_by_inverse_layer_idx` must be False",
    ),
    "cross-attention": (config(add_cross_attention=True), "`add_cross_attention` must be False"),
    "a head of its own": (config(tie_word_embeddings=False), "`tie_word_embeddings` must be True"),
    "two dropouts": (config(embd_pdrop=0.3), "`embd_pdrop` must be 0.1. Received: embd_pdrop=0.3"),
    "activation": (config(activation_function="prelu"), "`activation_function` must be one of"),
    "heads": (config(n_head=4), "config.json: `n_head` must divide `n_embd`"),
    "odd values": (config(n_layer="two"), "`n_layer` must be an integer, 0 or more"),
    "end": (config(eos_token_id=3), "`eos_token_id` must be the id of .* token=0, config=3"),
    "fewer layers": (config(n_layer=1), "left over: (transformer.)?h.1.* and 9 more"),
    "more layers": (config(n_layer=3), "missing: h.2.* and 9 more"),
    "wrong size": (config(n_inner=35), "of another shape: .*h.0.mlp.c_fc.bias .37,. instead of"),
    "no tensor": (without("c_attn.bias"), "missing: h.0.attn.c_attn.bias, h.1.attn.c_attn.bias.$"),
    "pickles": (
        lambda f: (f / WEIGHTS).rename(f / "pytorch_model.bin"),
        "which are never opened .* Received: found=.'pytorch_model.bin'.",
    ),
    "large vocabulary": (
        config(vocab_size=299),
        "is larger than the embedding. .* tokens=30., rows=299",
    ),
    "no vocabulary": (removed("vocab.json", "tokenizer.json"), "no tokenizer file"),
    "no merges": (removed("merges.txt", "tokenizer.json"), "merges.txt: no such file"),
    "two vocabularies": (another_token, "merges.txt and tokenizer.json must have the same"),
    "unknown end": (tokenizer_config(eos_token="<end>"), "`eos_token` must be a token of the"),
    "words": (
        fast(pre_tokenizer={"type": "Whitespace"}),
        "`model`: BPE is only supported with the",
    ),
    "added token": (
        fast(added_tokens=[{"content": "<S>", "id": 3}]),
        r"tokenizer.json: Tokens must not have the same id. Received: tokens=\['#', '<S>'\]",
    ),
    "frame": (
        fast(
            post_processor={
                "type": "BertProcessing",
                "cls": ["<|endoftext|>", 0],
                "sep": ["<|endoftext|>", 0],
            }
        ),
        "`post_processor` must add at most a start token",
    ),
    "ids": (fast_model(vocab={"a": 0, "b": 0}), "tokenizer.json must have the same contents"),
    "BPE dropout": (fast_model(dropout=0.1), "`BPE.dropout` must be None .* dropout=0.1"),
}

test_mistakes_take_one_line = mistakes(MISTAKES)

"""The first look at a checkpoint: quick, and without TensorFlow."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_attn.checkpoints import MODEL_TYPES, check_checkpoint
from tests.refusals import refused_in_one_line

WITHOUT_TENSORFLOW = """
import sys
from keras_attn.__main__ import main
main()
found = {name.partition(".")[0] for name in sys.modules}
print(sorted(found & {"tensorflow", "keras", "torch"}))
"""


def checkpoint(folder, files=("model.safetensors", "vocab.txt"), **config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    for name in files:
        (folder / name).touch()
    if "model.safetensors" in files:
        save_file({"a": np.zeros(3, np.float32)}, folder / "model.safetensors")
    return folder


def test_the_types_are_those_that_are_converted():
    from keras_attn.convert.huggingface import CONVERTERS

    assert sorted(MODEL_TYPES) == sorted(CONVERTERS)


CASES = {
    "another type": (
        {"model_type": "berd"},
        r"config.json: this `model_type` is not supported; supported are albert, bert, .*, "
        r"xlm-roberta\. Received: model_type='berd'\.$",
    ),
    "no type": ({"hidden_size": 3}, r"supported are .* Received: model_type=None\.$"),
    "a list": ({"model_type": ["bert"]}, r"Received: model_type=\['bert'\]\.$"),
    "a decoder": (
        {"model_type": "bert", "is_decoder": True},
        r"config.json: `is_decoder` must be False. Received: is_decoder=True\.$",
    ),
    "own code": (
        {"model_type": "bert", "auto_map": {"AutoModel": "model.Model"}},
        r"config.json: `auto_map` must be None. Received: auto_map=",
    ),
    "relative positions": (
        {"model_type": "bert", "position_embedding_type": "relative_key"},
        "`position_embedding_type` must be 'absolute'",
    ),
    "pickles": (
        {"model_type": "vit", "files": ["pytorch_model.bin"]},
        r"made contains no model.safetensors, only pickles, .* found=\['pytorch_model.bin'\]\.$",
    ),
    "no weights": (
        {"model_type": "t5", "files": ["spiece.model"]},
        r"made contains neither model.safetensors nor model.safetensors.index.json\.$",
    ),
    "no tokenizer": (
        {"model_type": "gpt2", "files": ["model.safetensors"]},
        r"made: no tokenizer file \(tokenizer.json, vocab.txt, vocab.json with merges.txt, or "
        r"sentencepiece.bpe.model, spiece.model or spm.model\)\.$",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_names_what_is_wrong_and_suggests_no_architecture(name, tmp_path):
    config, message = CASES[name]
    text = refused_in_one_line(message, check_checkpoint, checkpoint(tmp_path / "made", **config))
    assert "Did you mean" not in text


def test_damaged_and_missing_weights(tmp_path):
    folder = checkpoint(tmp_path / "made", model_type="bert")
    (folder / "model.safetensors").write_bytes(b"0")
    refused_in_one_line("model.safetensors is damaged or not a", check_checkpoint, folder)
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused_in_one_line("1.safetensors: no such file, although", check_checkpoint, folder)


@pytest.mark.parametrize("name", ["bert-base-uncased", "google/electra-small"])
def test_a_name_on_the_hub_is_no_folder(name):
    own = name.rpartition("/")[2]
    message = (
        rf"^{name} does not exist\. .*`hf download {name} --local-dir {own}`.*huggingface-cli dow.*"
        "`snapshot_download` of huggingface_hub, and `save_pretrained` of transformers"
    )
    refused_in_one_line(message, check_checkpoint, name)


def test_other_places(tmp_path):
    refused_in_one_line("a/b/c does not exist\\.$", check_checkpoint, "a/b/c")
    refused_in_one_line("./bert does not exist\\.$", check_checkpoint, "./bert")
    refused_in_one_line("missing does not exist\\.$", check_checkpoint, tmp_path / "missing")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused_in_one_line("empty has no config.json: .*`save_pretrained`", check_checkpoint, empty)
    (tmp_path / "file").write_text("")
    refused_in_one_line("must be a folder with config.json", check_checkpoint, tmp_path / "file")


def test_the_transformer_of_sentence_transformers(tmp_path):
    folder = checkpoint(tmp_path / "made" / "0_Transformer", model_type="bert").parent
    modules = [{"type": "sentence_transformers.models.Transformer", "path": "0_Transformer"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    assert check_checkpoint(folder) == folder / "0_Transformer" / "config.json"


def test_a_refusal_takes_less_than_a_second_and_no_tensorflow(tmp_path):
    """The best of three, because other processes may run."""
    made = {"model_type='llama'": {"model_type": "llama"}, "only pickles": CASES["pickles"][0]}
    for number, (message, config) in enumerate(made.items()):
        folder = checkpoint(tmp_path / str(number), **config)
        arguments = [sys.executable, "-c", WITHOUT_TENSORFLOW, "convert", folder, tmp_path / "out"]
        seconds = []
        for _ in range(3):
            start = time.monotonic()
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            seconds.append(time.monotonic() - start)
            assert message in done.stderr
            assert done.stdout == "[]\n"
        assert min(seconds) < 1

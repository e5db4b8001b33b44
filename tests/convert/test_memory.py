"""Conversion needs little more memory than the weights, and no tensor is held twice."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import _runs
from tests.convert.made import BERT, copy_of

pytestmark = pytest.mark.tensorflow

SIZES = {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8}
TOKENS, LAYERS = 30_000, 16
# The same process with a tiny checkpoint first, so that what TensorFlow takes is known.
MEASURE = """
import resource, sys
from keras_attn.convert import convert_huggingface
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
convert_huggingface(sys.argv[1])
before = peak()
weights = convert_huggingface(sys.argv[2]).task.backbone.weights
print(peak() - before, 4 * sum(weight.value.shape.num_elements() for weight in weights))
"""


def large_bert(folder):
    """A checkpoint of 65 million random numbers in bfloat16, in two files."""
    import ml_dtypes

    copy_of(BERT, folder)
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / name).unlink()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + [f"w{number}" for number in range(TOKENS - len(special))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    config = json.loads((folder / "config.json").read_text()) | SIZES | {"vocab_size": TOKENS}
    config |= {"num_hidden_layers": LAYERS, "max_position_embeddings": 512}
    (folder / "config.json").write_text(json.dumps(config))
    wide, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (TOKENS, wide),
        "embeddings.position_embeddings.weight": (512, wide),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], wide),
    }
    linear = {
        **{f"attention.self.{role}": (wide, wide) for role in ("query", "key", "value")},
        "attention.output.dense": (wide, wide),
        "intermediate.dense": (inner, wide),
        "output.dense": (wide, inner),
    }
    modules = {"pooler.dense": (wide, wide), "embeddings.LayerNorm": (wide,)}
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        modules |= {f"{name}.{part}": shape for part, shape in linear.items()}
        modules |= {f"{name}.{part}.LayerNorm": (wide,) for part in ("attention.output", "output")}
    for name, shape in modules.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    rng = np.random.default_rng(0)
    names = {}
    for number, part in enumerate((list(shapes)[:3], list(shapes)[3:]), start=1):
        file = f"model-{number}.safetensors"
        arrays = {name: rng.normal(size=shapes[name]).astype(ml_dtypes.bfloat16) for name in part}
        save_file(arrays, folder / file)
        names |= dict.fromkeys(part, file)
    index = {"weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.mark.slow
def test_a_conversion_takes_at_most_a_third_more_than_the_weights(tmp_path):
    folder = large_bert(tmp_path / "large")
    found = subprocess.run(
        [sys.executable, "-c", MEASURE, str(BERT), str(folder)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    peak, weights = map(int, found.stdout.split())
    assert weights > 250e6
    assert peak <= 1.35 * weights  # of which the tokenizer takes 0.1


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "bfloat16"])
def test_rows_of_tensors_are_read_by_themselves(dtype, tmp_path):
    import ml_dtypes

    kind = getattr(ml_dtypes, dtype, dtype)
    rng = np.random.default_rng(0)
    arrays = {
        "first": rng.normal(size=(5, 3)).astype(kind),
        "table": rng.normal(size=(7, 2, 3)).astype(kind),
        "number": np.array(2.5).astype(kind),
    }
    save_file(arrays, tmp_path / "model.safetensors")
    tensors = SafetensorsFolder(tmp_path)
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors.read(name), array.astype("float32"))
    expected = arrays["table"][2:5].astype("float32")
    np.testing.assert_array_equal(tensors.read("table", 2, 5), expected)
    assert tensors.read("table", 2, 5).dtype == np.float32


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([0, 1, 2, 3, 4], [(0, 2), (2, 4), (4, 5)]),
        ([-1, 0, 1, 2], [(0, 1), (1, 3), (3, 4)]),
        ([2, 0, 1, 3], [(0, 1), (1, 3), (3, 4)]),
        ([-1, 4, 0, 1, 2, 3, 5], [(0, 1), (1, 2), (2, 4), (4, 6), (6, 7)]),
        ([-1, -1, 0], [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_parts_of_a_table(rows, parts):
    assert list(_runs(np.array(rows), 2)) == parts

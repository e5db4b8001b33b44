"""Held-out inputs of a run, and the examples of an export that they become."""

import pytest

from keras_attn.cli.export import _examples
from keras_attn.training.reporting.held_out import held_out_inputs, write_held_out

IMAGE = b"\x89PNG\xff\x00"


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ('[{"texts": [["old", "x", "y"]]}, {"texts": [["a b", "x", "y"], ["c", "x", "x"]]}]', 2),
        *[(content, 0) for content in ("[]", "{", "[5]", '[{"texts": [["a"]]}]', '{"texts": 1}')],
    ],
)
def test_texts_with_samples_are_held_out_inputs(tmp_path, content, texts):
    assert held_out_inputs(tmp_path) == []
    (tmp_path / "samples.json").write_text(content)
    assert held_out_inputs(tmp_path) == ["a b", "c"][:texts]


@pytest.mark.parametrize("inputs", [["a [MASK]", "é\n"], [IMAGE, b""]])
def test_inputs_are_read_again_before_samples(tmp_path, inputs):
    (tmp_path / "samples.json").write_text('[{"texts": [["a b", "x", "y"]]}]')
    write_held_out(tmp_path, inputs)
    assert held_out_inputs(tmp_path) == inputs


def test_nothing_is_written_without_inputs(tmp_path):
    write_held_out(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["{", "5", '[{"a": 1}]', '[{"b64": "!"}]'])
def test_a_damaged_file_has_none(tmp_path, content):
    (tmp_path / "held_out.json").write_text(content)
    assert held_out_inputs(tmp_path) == []


class Made:
    """A task whose own examples are texts or images."""

    def __init__(self, *own):
        self.own = list(own)

    def example_texts(self):
        return self.own


@pytest.mark.parametrize(
    ("own", "inputs", "examples"),
    [
        (["own"], ["held out"], ["held out", "own"]),
        ([b"own"], [IMAGE], [IMAGE, b"own"]),
        ([b"own"], ["name.png"], None),  # of a run without images in its folder
        (["own"], [], None),
    ],
)
def test_examples_of_an_export_begin_with_held_out_inputs(own, inputs, examples):
    assert _examples(Made(*own), inputs) == examples

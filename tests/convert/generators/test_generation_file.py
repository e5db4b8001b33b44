"""How a checkpoint generates: the options of GPT-2 and T5; Marian's are in its own tests."""

import re

import pytest

from keras_attn.convert import convert_huggingface
from tests.convert.made import GOLDEN, check_mistake, copy_of, generation

pytestmark = pytest.mark.tensorflow

NAMES = ["gpt2", "t5"]  # the first one of 41 positions
DRAWN = {"do_sample": True, "temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def folder(name, tmp_path):
    return copy_of(GOLDEN / name, tmp_path / "checkpoint")


def converted(folder, **options):
    generation(**options)(folder)
    return convert_huggingface(folder)


def test_nothing_is_told(folder, name):
    conversion = converted(folder)
    decoding = conversion.task.decoding
    settings = (decoding.beams, decoding.length_penalty_form, decoding.stopping)
    assert settings == (1, "length", "heuristic")
    lengths = {"gpt2": (32, 10), "t5": (512, 512)}[name]  # a quarter; the rest and an end
    assert (decoding.max_source_length, decoding.max_length) == lengths
    assert not conversion.notes


def test_beams(folder):
    decoding = converted(
        folder, num_beams=3, length_penalty=0.5, early_stopping=True, no_repeat_ngram_size=2
    ).task.decoding
    assert (decoding.beams, decoding.length_penalty, decoding.stopping) == (3, 0.5, "early")
    assert (decoding.no_repeat_ngram, decoding.forced_end_is_free) == (2, False)


@pytest.mark.parametrize("top_k", [None, 7])
def test_what_is_drawn_is_a_note(folder, top_k):
    options = DRAWN if top_k is None else DRAWN | {"top_k": top_k}
    conversion = converted(folder, **options)
    sampling = conversion.task.decoding.sampling
    assert (sampling.temperature, sampling.top_p, sampling.repetition_penalty) == (0.7, 0.9, 1.2)
    assert sampling.top_k == (top_k or 50)  # 50 is transformers' own
    (note,) = conversion.notes
    assert "generation_config.json: `do_sample` is only applied by `predict --sample`" in note


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({"max_length": 20}, {"gpt2": (16, 5), "t5": (512, 19)}),  # with the prompt, or the start
        ({"max_length": 10**12}, {"gpt2": (32, 10), "t5": (512, 1 << 18)}),
        ({"max_new_tokens": 8}, {"gpt2": (34, 8), "t5": (512, 8)}),
    ],
)
def test_lengths(folder, name, options, lengths):
    conversion = converted(folder, **options)
    decoding = conversion.task.decoding
    assert (decoding.max_source_length, decoding.max_length) == lengths[name]
    noted = "generation_config.json: at most .* tokens are generated per text"
    assert [bool(re.search(noted, note)) for note in conversion.notes] == [True] * (
        options.get("max_length", 0) > 1 << 18
    )


MISTAKES = {
    "num_beams": (0, "`num_beams` must be a positive integer"),
    "early_stopping": ("soon", "`early_stopping` must be one of False, True"),
    "do_sample": ("yes", "`do_sample` must be true or false. Received: do_sample='yes'"),
    "repetition_penalty": (1.3, "`repetition_penalty` must be 1.0 or missing if `do_sample`"),
    "temperature": (float("nan"), "`temperature` must be a finite number above 0"),
    "top_k": (-3, "`top_k` must be an integer of 0 or more"),
    "top_p": (1.5, "`top_p` must be a number above 0 and at most 1"),
    "length_penalty": ("x", "`length_penalty` must be a finite number"),
    "no_repeat_ngram_size": (-1, "`no_repeat_ngram_size` must be an integer"),
    "max_new_tokens": (0, "`(max_new_tokens|max_length)` must be an? "),
    "bad_words_ids": ([[7]], "`bad_words_ids` must be None"),
    "eos_token_id": ([0, 5], r"`eos_token_id` must be (0|1). Received: eos_token_id=\[0, 5\]"),
    "forced_eos_token_id": (5, "`forced_eos_token_id` must be "),
    "renormalize_logits": (True, "`renormalize_logits` must be False"),
    "min_p": (0.1, "`min_p` must be None or missing"),
    "typical_p": (0.9, "`typical_p` must be 1.0 or missing"),
    "suppress_tokens": ([3], "`suppress_tokens` must be None or missing"),
}


@pytest.mark.parametrize("key", MISTAKES)
def test_mistakes(key, folder):
    value, message = MISTAKES[key]
    check_mistake(generation(**{key: value}), f"generation_config.json: {message}", folder)


def test_no_json(folder):
    path = folder / "generation_config.json"
    check_mistake(lambda _: path.write_text("{"), f"{path.name}: valid JSON is expected", folder)

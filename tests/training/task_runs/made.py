"""Small runs of each task: their data, their settings, and what commands say of them."""

import json

import numpy as np
import pytest

from keras_attn.cli import main
from keras_attn.training import run as job
from tests.data.test_images import of, png
from tests.written import written

SIZES = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32, "dropout": 0.0}
WIDE = SIZES | {"hidden_dim": 32, "intermediate_dim": 64}
TRAINING = {
    "batch_tokens": 256,
    "schedule": "constant",
    "learning_rate": 0.01,
    "warmup_steps": 3,
    "jit": "off",
}
LONGER = TRAINING | {"batch_tokens": 512, "warmup_steps": 10}
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
SCRIPT = str.maketrans("abcdefghij", "0123456789")
PEOPLE, PLACES = ["anna", "ben", "carla", "dario"], ["rome", "oslo", "lima", "quito"]
SENTENCES = [
    ("{person} lives in {place} .", "{p} O O {l} O"),
    ("{person} and {person2} left {place} .", "{p} O {q} O {l} O"),
    ("in {place} {person} sings .", "O {l} {p} O O"),
]


def partners(count, seed):
    """Words, and the same letters in another script and in another order."""
    generator = np.random.default_rng(seed)
    words = ["".join(generator.choice(list("abcdefghij"), 6)) for _ in range(count)]
    return [f"{word}\t{''.join(sorted(word)).translate(SCRIPT)}" for word in words]


def counting(count, seed):
    """Lines that count on in steps of one from anywhere in "abcdefg", round and round."""
    generator = np.random.default_rng(seed)
    return [
        "".join("abcdefg"[(start + i) % 7] for i in range(3 + more))
        for start, more in generator.integers(0, 12, (count, 2))
    ]


def labelled(count, seed):
    """Words, and whether they have an x in them."""
    generator = np.random.default_rng(seed)
    words = [
        "".join(generator.choice(list("abcx"), 5, p=[0.3, 0.3, 0.3, 0.1])) for _ in range(count)
    ]
    return [f"{word}\t{'with x' if 'x' in word else 'without'}" for word in words]


def with_letters(count, seed):
    """Words as JSON lines, with the vowels that they have as labels."""
    generator = np.random.default_rng(seed)
    words = ["".join(generator.choice(list("bcdaei"), 5)) for _ in range(count)]
    return [
        json.dumps({"text": word, "labels": [one for one in "aei" if one in word]})
        for word in words
    ]


def priced(count, seed):
    """Words, and 40 and 8 more for each x in them."""
    words = [line.split("\t")[0] for line in labelled(count, seed)]
    return [f"{word}\t{40 + 8 * word.count('x')}" for word in words]


def tagged(count, seed):
    """Sentences of people, of one name or two, and places; washington is both."""
    generator = np.random.default_rng(seed)

    def person():
        names = generator.choice([*PEOPLE, "washington"], generator.integers(1, 3))
        return " ".join(names), " ".join(["B-PER", "I-PER"][: len(names)])

    lines = []
    for _ in range(count):
        text, tags = SENTENCES[generator.integers(len(SENTENCES))]
        (first, p), (second, q) = person(), person()
        place = generator.choice([*PLACES, "washington"])
        words = text.format(person=first, person2=second, place=place)
        lines.append(f"{words}\t{tags.format(p=p, q=q, l='B-LOC')}")
    return lines


def repeating(shortest, longest):
    """A maker of lines that have a day again and again."""

    def lines(count, seed):
        generator = np.random.default_rng(seed)
        return [
            " ".join([generator.choice(DAYS)] * generator.integers(shortest, longest))
            for _ in range(count)
        ]

    return lines


def stripes(generator, upright):
    """8 x 8 pixels of noise with two bright stripes, upright or lying."""
    pixels = generator.integers(0, 100, (8, 8))
    pixels[generator.choice(8, 2, replace=False)] += 150
    return of(pixels.T if upright else pixels)


def image_folder(folder, count, seed):
    """A folder for each of two labels, with `count` images each."""
    generator = np.random.default_rng(seed)
    for upright, label in enumerate(("lying", "upright")):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            (folder / label / f"{number}.png").write_bytes(png(stripes(generator, upright)))
    return str(folder)


def waves(count, seed):
    """A noisy wave of seven steps, with a header."""
    generator = np.random.default_rng(seed)
    values = np.sin(np.arange(count) * 2 * np.pi / 7) + 0.2 * generator.normal(size=count)
    return ["day\ty", *(f"{day}\t{value:.4f}" for day, value in enumerate(values))]


MAKERS = {
    "classification": labelled,
    "multi_label_classification": with_letters,
    "regression": priced,
    "embedding": partners,
    "causal_lm": counting,
    "masked_lm": repeating(4, 9),
    "span_corruption": repeating(6, 15),
    "token_classification": tagged,
    "forecast": waves,
}
CHARACTERS = {"tokenizers": {"text": {"kind": "characters"}}}
LETTERS = {"preset": "encoder_tiny", "model": SIZES} | CHARACTERS
BASES = {
    "classification": LETTERS,
    "multi_label_classification": LETTERS,
    "regression": LETTERS,
    "image_classification": {"preset": "patch_tiny", "model": SIZES},
    "embedding": LETTERS | {"model": SIZES | {"pooling": "mean"}},
    "causal_lm": {"preset": "lm_tiny", "model": SIZES} | CHARACTERS,
    "masked_lm": {
        "preset": "bert_tiny",
        "model": WIDE | {"max_length": 24, "attention_dropout": 0.0},
        "tokenizers": {"text": {"kind": "word_piece", "vocabulary_size": 60}},
        "training": LONGER,
    },
    "span_corruption": {
        "preset": "t5_tiny",
        "model": WIDE | {"key_dim": 16},
        "tokenizers": {
            "source": {
                "kind": "sentencepiece",
                "model_type": "bpe",
                "vocabulary_size": 68,
                "sentinels": 12,
            }
        },
        "training": LONGER,
    },
    "token_classification": {
        "preset": "bert_tiny",
        "model": WIDE | {"max_length": 48, "attention_dropout": 0.0},
        "tokenizers": {"text": {"kind": "word_piece", "vocabulary_size": 120}},
        "training": LONGER,
    },
    "forecast": {
        "preset": "forecast_tiny",
        "model": SIZES,
        "training": TRAINING | {"label_smoothing": 0.0},
    },
}
"""Lowest settings of each task."""


def write_data(task, path, count, seed):
    """Writes data for a task, and returns their place."""
    if task == "image_classification":
        return image_folder(path, count, seed)
    # Of lists, which only JSON has.
    path = path.with_suffix(".jsonl") if task == "multi_label_classification" else path
    return written(path, MAKERS[task](count, seed))


def base(task, data, **training):
    """Settings of a run; `data` are those of the section."""
    numbers = BASES[task].get("training", TRAINING) | training
    return BASES[task] | {"task": task, "data": data, "training": numbers}


def trained(task, folder, counts, hold_out=None, **training):
    """Trains a task in `folder`/run, and returns the folder and the results.

    The training data are in `folder`/train, the test data in `folder`/test.
    """
    data = {
        part: write_data(task, folder / part, count, seed)
        for part, count, seed in zip(("train", "test"), counts, (1, 2), strict=True)
    }
    if hold_out:
        data["hold_out"] = hold_out
    return folder, job.train(folder / "run", base(task, data, **training))


def measured(model, data, out, *options):
    """What `evaluate` writes of a model."""
    assert main(["evaluate", str(model), "--data", str(data), "--json", str(out), *options]) == 0
    return json.loads(out.read_text())


def answers_of_a_run_and_its_export(trained, tmp_path, capsys, *inputs, evaluates=(True, True)):
    """Evaluates, exports, verifies and asks a run; what both `predict`, which must be equal."""
    folder, results = trained
    run, exported = folder / "run", tmp_path / "exported"
    assert main(["export", str(run), str(exported)]) == 0
    assert main(["verify", str(exported)]) == 0
    answers = []
    for model, is_evaluated in zip((run, exported), evaluates, strict=True):
        if is_evaluated:
            found = measured(model, folder / "test", tmp_path / "out.json")
            both = [name for name in results if isinstance(found.get(name), int | float)]
            assert len(both) > 1
            for name in both:
                assert found[name] == pytest.approx(results[name])
        capsys.readouterr()
        if inputs:
            assert main(["predict", str(model), *map(str, inputs)]) == 0
            answers.append(capsys.readouterr().out)
    assert len(set(answers)) <= 1
    return answers[0] if answers else None


def refusal(capsys, *command):
    """What a command says that ends with a user's mistake."""
    capsys.readouterr()
    assert main([str(word) for word in command]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error

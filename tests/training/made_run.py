"""A run of seconds: invented words, spelt letter by letter."""

import numpy as np

SOUNDS = {"a": "AA", "b": "B", "c": "K", "d": "D", "e": "EH", "f": "F"}


def write_words(path, count, seed):
    """Lines of a word and its sounds; some words twice, the second time pronounced otherwise."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list(SOUNDS), rng.integers(1, 8))) for _ in range(count)]
    lines = [f"{word}\t{' '.join(SOUNDS[letter] for letter in word)}\n" for word in words]
    lines += [f"{word}\t{SOUNDS[word[0]]}\n" for word in words[::7]]
    path.write_text("".join(lines))
    return str(path)


def write_parts(folder):
    """Files of words to train, validate and test with."""
    return {
        name: write_words(folder / f"{name}.tsv", count, seed)
        for name, count, seed in (("train", 60, 1), ("valid", 11, 2), ("test", 13, 3))
    }


def run_settings(data, **training):
    """The lowest layer of settings; `data` is a file, or the section's settings."""
    return {
        "preset": "g2p_small",
        "data": data if isinstance(data, dict) else {"train": [data]},
        "model": {"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 11, "num_heads": 2},
        "training": {
            "epochs": 2,
            "batch_tokens": 100,
            "schedule": "constant",
            "warmup_steps": 3,
            "learning_rate": 0.01,
            "ema_decay": 0.9,
            "log_every": 3,
            "deterministic": False,
        }
        | training,
    }

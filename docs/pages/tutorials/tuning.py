# %% [markdown]
# # Tuning with KerasTuner, attention mechanism included
#
# KerasTuner searches sizes, learning rate and the attention mechanism of an encoder that finds the stressed
# vowel of English words. The packages: `pip install 'keras_attn[data,tune]'`.

# %%
import keras
import keras_tuner
import numpy as np

from keras_attn.data import load_cmudict
from keras_attn.tuning import PresetHyperModel


def stressed_vowel(phonemes):
    vowels = [phoneme for phoneme in phonemes.split() if phoneme[-1].isdigit()]
    return next((at for at, vowel in enumerate(vowels) if vowel[-1] == "1"), 0)


def words_and_labels(part, count):
    rows = {word: stressed_vowel(sounds) for word, sounds in zip(part.sources, part.targets)}
    rows = [(word, label) for word, label in rows.items() if label < 4]
    chosen = np.random.default_rng(0).permutation(len(rows))[:count]
    return [rows[at][0] for at in chosen], np.array([rows[at][1] for at in chosen])


parts = load_cmudict(stress=True)
train_words, train_labels = words_and_labels(parts["train"], 20_000)
test_words, test_labels = words_and_labels(parts["test"], 4_000)
letters = keras.layers.TextVectorization(
    split="character", standardize=None, output_sequence_length=20
)
letters.adapt(train_words)
train_ids, test_ids = (np.array(letters(words)) for words in (train_words, test_words))

# %% [markdown]
# ## The search space
#
# `PresetHyperModel` builds variants of a preset. Its family has a space of its own; entries replace
# parts of it. Mechanisms are named as in `--set attention=NAME`.

# %%
hypermodel = PresetHyperModel(
    "encoder_tiny",
    vocabulary_size=letters.vocabulary_size(),
    num_classes=4,
    max_length=20,
    space={
        "attention.name": ["dense", "local", "linear"],
        "model.num_layers": [1, 2],
        "model.hidden_dim": [64],
        "model.intermediate_dim": [256],
        "model.num_heads": [4],
    },
)
tuner = keras_tuner.RandomSearch(
    hypermodel,
    objective="val_accuracy",
    max_trials=6,
    seed=1,
    directory="tuning",
    project_name="stress",
    overwrite=True,
)
tuner.search(
    {"token_ids": train_ids},
    train_labels,
    validation_split=0.1,
    batch_size=128,
    epochs=1,
    verbose=0,
)

# %% [markdown]
# ## The trials

# %%
for trial in sorted(tuner.oracle.trials.values(), key=lambda trial: -trial.score):
    print(f"{trial.score:.1%}", trial.hyperparameters.values)

# %% [markdown]
# ## The best model, trained longer

# %%
best = tuner.hypermodel.build(tuner.get_best_hyperparameters()[0])
best.fit({"token_ids": train_ids}, train_labels, batch_size=128, epochs=4, verbose=2)
_, accuracy = best.evaluate({"token_ids": test_ids}, test_labels, verbose=0)
print(
    f"on {len(test_words):,} other words: {accuracy:.1%}, always the first vowel: "
    f"{np.mean(test_labels == 0):.1%}"
)

# %% [markdown]
# From the command line `keras-attn tune` runs each trial as a process of its own, several at once, resumes an
# interrupted search, and writes the best settings as a file for `keras-attn train`.

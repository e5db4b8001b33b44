"""Writing of golden checkpoints and outputs, for the scripts that make them with `transformers`."""

import pathlib
import re
import shutil

import numpy as np
import torch
import transformers

GOLDEN = pathlib.Path(__file__).parent / "golden"


def empty_folder(name):
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def draw_parameters(model, scale, norms, kept="$^"):
    """Draws all parameters but those kept, around 1 for norms and around 0 for others.

    Both are patterns of names.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not re.search(kept, name):
                centre = 1.0 if re.search(norms, name) else 0.0
                parameter.copy_(centre + scale * torch.randn(parameter.shape))


def generated(model, ids, beams, most, **options):
    """What a model generates for ids, up to an end, then -1; None where there is no end."""
    found = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        num_beams=beams,
        do_sample=False,
        **options,
    )[0].tolist()
    found = found[1 if model.config.is_encoder_decoder else len(ids) :]
    end = model.config.eos_token_id
    if end not in found:
        return None
    found = found[: found.index(end) + 1]
    return found + [-1] * (most - len(found))


def write_outputs(name, **outputs):
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    np.savez_compressed(GOLDEN / f"{name}_outputs.npz", **outputs, **versions)

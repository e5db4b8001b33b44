"""Writes what ViT and DeiT of `transformers` compute of images of random numbers.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install pillow torch transformers && python tests/convert/make_vit_golden.py

Every parameter is drawn at random. The DeiT with two classifiers reads larger images, which its
processor resizes and cuts.
"""

import json

import numpy as np
import torch
import transformers
from golden_files import draw_parameters, empty_folder, write_outputs

SIZES = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "image_size": 8,
    "patch_size": 4,
    "layer_norm_eps": 1e-3,
    "id2label": {0: "cat", 1: "dog", 2: "fox", 3: "hen"},
}
PIXELS = {"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
MODELS = {
    "vit": (transformers.ViTForImageClassification, transformers.ViTConfig, [0.5] * 3, [0.5] * 3),
    "deit": (
        transformers.DeiTForImageClassification,
        transformers.DeiTConfig,
        *([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ),
}


def main():
    pixels = np.random.default_rng(7).integers(0, 256, (5, 8, 8, 3))
    outputs = {"pixels": pixels.astype("uint8")}
    for name, (architecture, kind, mean, deviation) in MODELS.items():
        torch.manual_seed(len(name))
        model = architecture(kind(**SIZES)).eval()
        draw_parameters(model, 0.4, r"layernorm(_\w+)?\.weight$")
        folder = empty_folder(name)
        model.save_pretrained(folder)
        settings = PIXELS | {"image_mean": mean, "image_std": deviation}
        (folder / "preprocessor_config.json").write_text(json.dumps(settings))
        images = (pixels / 255 - mean) / deviation
        with torch.no_grad():
            logits = model(torch.tensor(images.transpose(0, 3, 1, 2), dtype=torch.float32)).logits
        outputs[name] = logits.numpy()
    outputs["large"] = larger = np.random.default_rng(8).integers(0, 256, (5, 17, 23, 3), "uint8")
    outputs["taught"] = taught("taught", larger)
    write_outputs("vit", **outputs)


def taught(name, images):
    """The logits of a DeiT with two classifiers, which are their mean."""
    torch.manual_seed(11)
    model = transformers.DeiTForImageClassificationWithTeacher(transformers.DeiTConfig(**SIZES))
    draw_parameters(model.eval(), 0.4, r"layernorm(_\w+)?\.weight$")
    processor = transformers.DeiTImageProcessorPil(
        size={"height": 12, "width": 11}, crop_size={"height": 8, "width": 8}
    )
    folder = empty_folder(name)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    with torch.no_grad():
        return model(**processor([*images], return_tensors="pt")).logits.numpy()


if __name__ == "__main__":
    main()

"""Writes what T5 of `transformers` computes, for tests/models/t5/test_t5.py.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/models/make_t5_golden.py

Every parameter is drawn at random; no two sizes are equal. `golden/t5.npz` and `golden/t5_v1_1.npz`
hold the parameters by their names, and what the encoder and the whole model make of ids, of which 0
is padding.
"""

import pathlib

import numpy as np
import torch
import transformers

GOLDEN = pathlib.Path(__file__).parent / "golden"
SIZES = {
    "vocab_size": 23,
    "d_model": 15,
    "d_kv": 4,
    "d_ff": 37,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 5,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 11,
    "layer_norm_epsilon": 1e-3,
    "attn_implementation": "eager",
}
VERSIONS = {
    "t5": {"feed_forward_proj": "relu"},
    "t5_v1_1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}


def main():
    rng = np.random.default_rng(1)
    source = rng.integers(1, 23, (4, 19)) * (np.arange(19) < np.array([[19], [7], [1], [12]]))
    target = rng.integers(1, 23, (4, 13)) * (np.arange(13) < np.array([[13], [9], [5], [1]]))
    for name, options in VERSIONS.items():
        torch.manual_seed(0)
        model = transformers.T5ForConditionalGeneration(
            transformers.T5Config(**SIZES, **options)
        ).eval()
        if name == "t5_v1_1":  # which transformers ties by itself
            model.lm_head.weight = torch.nn.Parameter(torch.zeros(model.shared.weight.shape))
        with torch.no_grad():
            for parameter, tensor in model.named_parameters():
                centre = 1.0 if "layer_norm" in parameter else 0.0
                tensor.copy_(centre + 0.3 * torch.randn(tensor.shape))
            found = model(
                input_ids=torch.tensor(source),
                attention_mask=torch.tensor((source != 0).astype("int64")),
                decoder_input_ids=torch.tensor(target),
            )
        parameters = {key: tensor.detach().numpy() for key, tensor in model.named_parameters()}
        np.savez_compressed(
            GOLDEN / f"{name}.npz",
            torch=torch.__version__,
            transformers=transformers.__version__,
            source_ids=source.astype("int32"),
            target_ids=target.astype("int32"),
            encoded=found.encoder_last_hidden_state.numpy(),
            logits=found.logits.numpy(),
            **parameters,
        )
        print(name, len(parameters), "parameters")


if __name__ == "__main__":
    main()

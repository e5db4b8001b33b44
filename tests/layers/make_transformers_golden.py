"""Writes what attention of `transformers` computes, for attention/test_transformers_golden.py.

Neither PyTorch nor transformers is needed for the tests, only to make their file again:

    pip install torch transformers numpy && python tests/layers/make_transformers_golden.py

Every parameter is drawn at random. Sizes are distinct where the models let them be.
"""

import pathlib

import numpy as np
import torch
import transformers
from transformers.models.big_bird import modeling_big_bird
from transformers.models.bloom import modeling_bloom
from transformers.models.llama import modeling_llama
from transformers.models.longformer import modeling_longformer
from transformers.models.longt5 import modeling_longt5
from transformers.models.nystromformer import modeling_nystromformer
from transformers.models.reformer import modeling_reformer
from transformers.models.t5 import modeling_t5
from transformers.models.xlnet import modeling_xlnet

FILE = pathlib.Path(__file__).parent / "golden" / "transformers_attention.npz"
LENGTH, SHORT = 11, 8  # of the two sequences
HIDDEN = torch.finfo(torch.float32).min


def drawn(module, rng):
    """The module with random parameters, and these by name."""
    with torch.no_grad():
        for parameter in module.parameters():
            values = rng.normal(scale=0.5, size=parameter.shape).astype("float32")
            parameter.copy_(torch.from_numpy(values))
    return module.eval(), {f"weights/{name}": p for name, p in module.named_parameters()}


def inputs(rng, features, length=LENGTH):
    return torch.from_numpy(rng.normal(size=(2, length, features)).astype("float32"))


def real(length=LENGTH):
    return torch.arange(length)[None, :] < torch.tensor([[SHORT], [length]])


def scores_mask(is_causal):
    """What is added to scores: (batch, 1, target, source)."""
    allowed = real()[:, None, None, :].expand(2, 1, LENGTH, LENGTH)
    if is_causal:
        allowed = allowed & torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    return torch.zeros(allowed.shape).masked_fill(~allowed, HIDDEN)


def t5(rng, is_causal):
    config = transformers.T5Config(
        d_model=10,
        d_kv=3,
        num_heads=2,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=7,
        is_decoder=is_causal,
        attn_implementation="eager",
    )
    layer = modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    layer, weights = drawn(layer, rng)
    x = inputs(rng, 10)
    return weights | {"x": x, "outputs": layer(x, mask=scores_mask(is_causal))[0]}


def bloom(rng, num_heads):
    size = 3 * num_heads
    config = transformers.BloomConfig(hidden_size=size, n_head=num_heads)
    layer, weights = drawn(modeling_bloom.BloomAttention(config, layer_idx=0), rng)
    x = inputs(rng, size)
    alibi = modeling_bloom.build_alibi_tensor(torch.ones(2, LENGTH), num_heads, torch.float32)
    outputs = layer(x, torch.zeros_like(x), alibi, scores_mask(is_causal=True))[0]
    return weights | {"x": x, "outputs": outputs}


def llama(rng, **rope):
    config = transformers.LlamaConfig(
        hidden_size=20,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=6,
        attention_bias=True,
        rope_parameters={"rope_theta": 100.0, **rope},
        attn_implementation="eager",
    )
    layer, weights = drawn(modeling_llama.LlamaAttention(config, layer_idx=0), rng)
    x = inputs(rng, 20)
    turns = modeling_llama.LlamaRotaryEmbedding(config)(x, torch.arange(LENGTH)[None])
    outputs = layer(x, turns, scores_mask(is_causal=True))[0]
    return weights | {"x": x, "outputs": outputs}


def xlnet(rng, is_causal):
    """A segment behind a memory of four states, one of which the first sequence lacks."""
    config = transformers.XLNetConfig(
        vocab_size=2, d_model=6, n_head=2, n_layer=1, d_inner=2, dropout=0.0
    )
    layer, weights = drawn(modeling_xlnet.XLNetRelativeAttention(config), rng)
    x, memory = inputs(rng, 6, 5), inputs(rng, 6, 4)
    hidden = torch.zeros(2, 5, 9, dtype=torch.bool)
    hidden[0, :, 0] = True
    if is_causal:
        hidden |= torch.ones(5, 9, dtype=torch.bool).triu(5)
    waves = modeling_xlnet.XLNetModel(config).relative_positional_encoding(5, 9, bsz=2)
    h, mems = x.transpose(0, 1), memory.transpose(0, 1)  # (length, batch, features)
    both = torch.cat([mems, h])
    project = "ibh,hnd->ibnd"
    read = layer.rel_attn_core(
        torch.einsum(project, h, layer.q),
        torch.einsum(project, both, layer.k),
        torch.einsum(project, both, layer.v),
        torch.einsum(project, waves, layer.r),
        attn_mask=hidden.permute(1, 2, 0)[..., None].float(),
    )
    outputs = torch.einsum("ibnd,hnd->bih", read, layer.o)
    return weights | {"x": x, "memory": memory, "outputs": outputs}


def longformer(rng, number_of_globals):
    """A window of four on either side; global positions have the weights of the others."""
    config = transformers.LongformerConfig(
        hidden_size=6, num_attention_heads=2, attention_window=[8], attention_probs_dropout_prob=0.0
    )
    layer = modeling_longformer.LongformerSelfAttention(config, layer_id=0)
    layer, weights = drawn(layer, rng)
    for role in ("query", "key", "value"):
        getattr(layer, f"{role}_global").load_state_dict(getattr(layer, role).state_dict())
    x = inputs(rng, 6, 24)
    mask = torch.zeros(2, 24)
    mask[:, :number_of_globals] = 10_000.0
    mask[0, SHORT:] = -10_000.0
    outputs = layer(x, mask, mask < 0, mask > 0, number_of_globals > 0)[0]
    return weights | {"x": x, "outputs": outputs}


def longformer_globals(rng):
    """Global positions with weights of their own, elsewhere in each row."""
    config = transformers.LongformerConfig(
        hidden_size=6, num_attention_heads=2, attention_window=[4], attention_probs_dropout_prob=0.0
    )
    layer, weights = drawn(modeling_longformer.LongformerSelfAttention(config, layer_id=0), rng)
    x = inputs(rng, 6, 24)
    mask = torch.zeros(2, 24)
    mask[0, [1, 5]] = mask[1, [0, 13]] = 10_000.0
    mask[0, SHORT:] = -10_000.0
    outputs = layer(x, mask, mask < 0, mask > 0, True)[0]
    return weights | {"x": x, "outputs": outputs, "global_mask": mask > 0}


def big_bird(rng, length):
    """Outside of training: the first block in place of every random one."""
    config = transformers.BigBirdConfig(
        hidden_size=6, num_attention_heads=2, block_size=4, num_random_blocks=2
    )
    layer = modeling_big_bird.BigBirdBlockSparseAttention(config, seed=0)
    layer, weights = drawn(layer, rng)
    x = inputs(rng, 6, 32)
    mask = (torch.arange(32)[None, :] < torch.tensor([[length], [32]])).float()
    make = modeling_big_bird.BigBirdModel.create_masks_for_block_sparse_attn
    blocked, band, from_mask, to_mask = make(mask, 4)
    outputs = layer(x, band, from_mask, to_mask, blocked, blocked)[0]
    return weights | {"x": x, "outputs": outputs.reshape(2, 32, 6)}


def nystromformer(rng):
    """One row: the start of the inverse depends on all rows of a batch."""
    config = transformers.NystromformerConfig(
        hidden_size=6,
        num_attention_heads=2,
        num_landmarks=4,
        segment_means_seq_len=12,
        conv_kernel_size=5,
        attention_probs_dropout_prob=0.0,
    )
    layer, weights = drawn(modeling_nystromformer.NystromformerSelfAttention(config), rng)
    x = inputs(rng, 6, 12)[:1]
    return weights | {"x": x, "outputs": layer(x)[0]}


def longt5(rng):
    config = transformers.LongT5Config(
        d_model=10,
        d_kv=3,
        num_heads=2,
        local_radius=3,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=7,
    )
    layer = modeling_longt5.LongT5LocalAttention(config, has_relative_attention_bias=True)
    layer, weights = drawn(layer, rng)
    x = inputs(rng, 10)
    mask = modeling_longt5._get_local_attention_mask(real(), layer.block_len, x.device)
    return weights | {"x": x, "outputs": layer(x, mask=mask)[0]}


def reformer_layer(rng, chunk_length, **arguments):
    config = transformers.ReformerConfig(
        attention_head_size=3,
        num_attention_heads=2,
        hidden_size=6,
        lsh_attn_chunk_length=chunk_length,
        num_buckets=4,
        lsh_attention_probs_dropout_prob=0.0,
        **arguments,
    )
    return drawn(modeling_reformer.LSHSelfAttention(config, layer_idx=0), rng)


def reformer(rng, chunk_length, is_causal=False):
    """All in one bucket: in chunks as long as the sequence, and in shorter ones."""
    layer, weights = reformer_layer(rng, chunk_length, num_hashes=1, is_decoder=is_causal)
    x = inputs(rng, 6, 12)
    layer._hash_vectors = lambda *_: torch.zeros(2, 2, 12, dtype=torch.long)
    return weights | {"x": x, "outputs": layer(x).hidden_states}


def reformer_buckets(rng):
    layer, _ = reformer_layer(rng, 4, num_hashes=3, hash_seed=7)
    vectors = torch.from_numpy(rng.normal(size=(2, 2, LENGTH, 3)).astype("float32"))
    buckets = layer._hash_vectors(vectors, 3, None).view(2, 2, 3, LENGTH)
    torch.manual_seed(7)  # as the layer does
    rotations = torch.randn(2, 3, 3, 2)
    return {"x": vectors, "rotations": rotations, "outputs": buckets % 4}


CASES = {
    "t5/both-ways": lambda rng: t5(rng, is_causal=False),
    "t5/causal": lambda rng: t5(rng, is_causal=True),
    "bloom/4": lambda rng: bloom(rng, 4),
    "bloom/6": lambda rng: bloom(rng, 6),
    "llama/default": lambda rng: llama(rng, rope_type="default"),
    "llama/linear": lambda rng: llama(rng, rope_type="linear", factor=4.0),
    "xlnet/both-ways": lambda rng: xlnet(rng, is_causal=False),
    "xlnet/causal": lambda rng: xlnet(rng, is_causal=True),
    "longformer/0": lambda rng: longformer(rng, 0),
    "longformer/2": lambda rng: longformer(rng, 2),
    "longt5": longt5,
    "reformer/whole": lambda rng: reformer(rng, 12),
    "reformer/causal": lambda rng: reformer(rng, 12, is_causal=True),
    "reformer/chunks": lambda rng: reformer(rng, 4),
    "reformer/buckets": reformer_buckets,
    "longformer/globals": longformer_globals,
    "big_bird/32": lambda rng: big_bird(rng, 32),
    "big_bird/30": lambda rng: big_bird(rng, 30),
    "nystromformer": nystromformer,
}


def main():
    arrays = {}
    for number, (name, make) in enumerate(CASES.items()):
        with torch.no_grad():
            made = make(np.random.default_rng(number))
        arrays |= {f"{name}/{key}": tensor.detach().numpy() for key, tensor in made.items()}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    np.savez_compressed(FILE, **versions, **arrays)


if __name__ == "__main__":
    main()

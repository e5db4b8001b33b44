"""Conversion of Hugging Face's GPT-2: configuration, weights and task."""

from pathlib import Path
from typing import Any

from keras_attn.convert.byte_level_bpe import read_byte_level_bpe
from keras_attn.convert.configuration import (
    CONFIG,
    make_model,
    read_activation,
    read_arguments,
    rows_without_token,
)
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.generation_file import decoding_of, notes_on, read_generation
from keras_attn.convert.json_files import require_values
from keras_attn.convert.safetensors_folder import SafetensorsFolder
from keras_attn.convert.weight_map import WeightMap
from keras_attn.models import GPT2
from keras_attn.tasks import CausalLMTask, DecodingSettings
from keras_attn.validation import require

# Arguments of `GPT2` by the key of their value, with its default.
_USED = {
    "vocab_size": ("vocabulary_size", 50_257),
    "n_layer": ("num_layers", 12),
    "n_embd": ("hidden_dim", 768),
    "n_head": ("num_heads", 12),
    "n_inner": ("intermediate_dim", None),
    "n_positions": ("max_length", 1024),
    "resid_pdrop": ("dropout", 0.1),
    "attn_pdrop": ("attention_dropout", 0.1),
    "layer_norm_epsilon": ("epsilon", 1e-5),
}
_ONLY = {
    "is_encoder_decoder": False,
    "reorder_and_upcast_attn": False,
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
    "tie_word_embeddings": True,
}
_OTHERS = ("activation_function", "embd_pdrop")
_GENERATION = {"bad_words_ids": None, "min_length": 0, "renormalize_logits": False}


def convert_gpt2(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a GPT-2 folder of transformers.

    Ids are one greater than in transformers, because 0 is padding; tokens are the same.

    Args:
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        A `CausalLMTask` with the checkpoint's options of generation, greedily by default.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    arguments = gpt2_arguments(folder / CONFIG, config)
    tokenizer, add_start = read_byte_level_bpe(folder)
    rows = arguments["vocabulary_size"] - 1
    notes = rows_without_token(folder, tokenizer.vocabulary_size - 1, rows)
    for role, ours in (("bos", tokenizer.start_id), ("eos", tokenizer.end_id)):
        found = config.get(f"{role}_token_id")
        require(
            found in (None, ours - 1),
            f"{folder}: `{role}_token_id` must be the id of the tokenizer's token.",
            token=ours - 1,
            config=found,
        )
    path, options = read_generation(folder, config)
    decoding = _decoding(path, options, arguments["max_length"], tokenizer.end_id - 1)
    tensors = SafetensorsFolder(folder)
    backbone = make_model(GPT2, arguments, folder / CONFIG, _USED, tensors)
    fill_gpt2(backbone, tensors)
    task = CausalLMTask(backbone, tokenizer, decoding, add_start)
    return Conversion(task, notes + notes_on(path, options, decoding))


def gpt2_arguments(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Reads the arguments of `GPT2` from a configuration.

    Args:
        path: The file, for error messages.
        config: Its content.

    Raises:
        UserError: A key is unknown, or has a value that is not supported.
    """
    arguments = read_arguments(path, config, "gpt2", _USED, _ONLY, _OTHERS)
    arguments["activation"] = read_activation(path, config, "activation_function", "gelu_new")
    require_values(path, config, embd_pdrop=arguments["dropout"])  # one dropout for both
    arguments["vocabulary_size"] += 1  # padding
    return arguments


def fill_gpt2(model: GPT2, tensors: SafetensorsFolder) -> None:
    """Copies a checkpoint's weights into a model of the same sizes and one more token.

    Args:
        model: The model.
        tensors: The checkpoint.

    Raises:
        UserError: A tensor is missing, unused or of another shape.
    """
    weights = WeightMap()
    weights.copy_embedding(model.embedding.embeddings, "wte.weight")
    weights.copy(model.positions.embeddings, "wpe.weight")
    for number, block in enumerate(model.blocks):
        layer = f"h.{number}"
        weights.copy_norm(block.self_attention_residual.norm, f"{layer}.ln_1")
        weights.copy_conv1d(block.self_attention.projections[0], f"{layer}.attn.c_attn")
        weights.copy_conv1d(block.self_attention.output_projection, f"{layer}.attn.c_proj")
        weights.copy_norm(block.feed_forward_residual.norm, f"{layer}.ln_2")
        weights.copy_conv1d(block.feed_forward.intermediate, f"{layer}.mlp.c_fc")
        weights.copy_conv1d(block.feed_forward.output_projection, f"{layer}.mlp.c_proj")
    weights.copy_norm(model.norm, "ln_f")
    weights.ignore(r"h\.\d+\.attn\.(masked_)?bias")  # the causal mask
    weights.ignore(r"lm_head\.weight")  # the embedding once more
    weights.fill(model, tensors, lambda name: name.removeprefix("transformer."))


def _decoding(path: Path, options: dict[str, Any], positions: int, end: int) -> DecodingSettings:
    """Settings equal to those of transformers; by default a quarter of the text is generated."""
    # They include the prompt.
    require_values(path, options, **_GENERATION, eos_token_id=end, forced_eos_token_id=end)
    whole = options.get("max_length", positions)
    require(
        isinstance(whole, int) and whole > 1,
        f"{path}: `max_length` must be an integer above 1 (it includes the prompt).",
        max_length=whole,
    )
    whole = min(whole, positions)
    longest = options.get("max_new_tokens", max(1, whole // 4))
    require(
        isinstance(longest, int) and 0 < longest <= whole,
        f"{path}: `max_new_tokens` must be an integer from 1 to {whole}.",
        max_new_tokens=longest,
    )
    return decoding_of(path, options, whole - longest + 1, longest)

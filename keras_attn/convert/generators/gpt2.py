"""Conversion of Hugging Face's GPT-2: configuration, weights and task."""

from pathlib import Path
from typing import Any

from keras_attn.checkpoints import require_values
from keras_attn.convert.conversion import Conversion
from keras_attn.convert.files.configuration import (
    CONFIG,
    make_model,
    read_activation,
    read_arguments,
    rows_without_token,
)
from keras_attn.convert.files.outgoing import Outgoing
from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.convert.files.written_config import (
    require_counterparts,
    written_activation,
    written_arguments,
)
from keras_attn.convert.generators.generation_file import (
    GENERATION,
    decoding_of,
    notes_on,
    read_generation,
    written_generation,
)
from keras_attn.convert.tokenizers.tokenizer_file import PADDING, ReadTokenizer, read_tokenizer
from keras_attn.convert.tokenizers.written_tokenizers import gpt2_tokenizer_files
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
_PREFIX = "transformer."
_ARCHITECTURE = "GPT2LMHeadModel"
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
    read = read_tokenizer(folder)
    tokenizer = read.tokenizer
    _check_tokenizer(folder, read)
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
    gpt2_weights(backbone).fill(backbone, tensors, _known_name)
    task = CausalLMTask(backbone, tokenizer, decoding, read.with_start)
    return Conversion(task, (*read.notes, *notes, *notes_on(path, options, decoding)))


def _check_tokenizer(folder: Path, read: ReadTokenizer) -> None:
    """Raises unless ids are one greater here, and texts have at most a start."""
    padding = read.tokenizer.vocabulary[0]
    require(
        padding == PADDING,
        f"{folder}: padding that differs from start and end is not supported.",
        padding=padding,
    )
    require(
        read.ends_between == 0,
        f"{folder}: `post_processor` must add at most a start token.",
        end=read.tokenizer.vocabulary[read.tokenizer.end_id],
    )


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


def gpt2_weights(model: GPT2) -> WeightMap:
    """Maps the weights of a model to the tensors of a checkpoint with one token less.

    Args:
        model: The model.
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
    return weights


def outgoing_gpt2(task: CausalLMTask) -> Outgoing:
    """Describes the folder of a task: the inverse of `convert_gpt2`.

    Args:
        task: The task, with a `GPT2`.

    Raises:
        UserError: The task has something without a counterpart.
    """
    model, tokenizer, decoding = task.backbone, task.tokenizer, task.decoding
    config = written_arguments(model, _USED) | {
        "architectures": [_ARCHITECTURE],
        "model_type": "gpt2",
        "activation_function": written_activation(model.get_config()["activation"]),
        "embd_pdrop": model.get_config()["dropout"],
        "bos_token_id": tokenizer.start_id - 1,
        "eos_token_id": tokenizer.end_id - 1,
        "dtype": "float32",
    }
    require_counterparts(model, gpt2_arguments(Path(CONFIG), config), _ARCHITECTURE)
    options, notes = written_generation(decoding)
    lengths = {
        "max_length": decoding.max_source_length + decoding.max_length - 1,
        "max_new_tokens": decoding.max_length,
    }
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id")}
    return Outgoing(
        model=model,
        weights=gpt2_weights(model),
        rename=lambda name: _PREFIX + name,
        files={
            CONFIG: config,
            GENERATION: options | lengths | ids,
            **gpt2_tokenizer_files(tokenizer, task.add_start, _ARCHITECTURE),
        },
        notes=notes,
    )


def _known_name(name: str) -> str:
    return name.removeprefix(_PREFIX)


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

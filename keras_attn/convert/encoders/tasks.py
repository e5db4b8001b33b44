"""Conversion of the text encoders of Hugging Face with their tokenizers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attn.convert.conversion import Conversion
from keras_attn.convert.encoders.family import MASKED, OF_QUESTIONS, OF_TEXTS, EncoderFamily
from keras_attn.convert.encoders.heads import (
    is_reranker,
    kind_of_texts,
    label_names,
    score_activation,
)
from keras_attn.convert.encoders.models import arguments_of, convert_encoder
from keras_attn.convert.encoders.sentence_transformers import (
    embedding_settings,
    transformer_folder,
    with_dense_layers,
)
from keras_attn.convert.files.configuration import CONFIG, rows_without_token
from keras_attn.convert.files.json_files import named_in_errors
from keras_attn.convert.files.written_config import without_counterpart
from keras_attn.convert.tokenizers.tokenizer_file import read_tokenizer
from keras_attn.convert.tokenizers.written_tokenizers import (
    pipeline_files,
    roberta_tokenizer_files,
    word_piece_files,
)
from keras_attn.tasks import (
    EmbeddingTask,
    MaskedLMTask,
    QuestionAnsweringTask,
    RankTask,
    TokenClassificationTask,
)
from keras_attn.tasks.text_inputs import has_segments
from keras_attn.tokenizers import PipelineTokenizer, Tokenizer
from keras_attn.validation import require

# Models that read pairs of texts with two end tokens between them.
_TWO_ENDS = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer")
# Models by the kind of their tokenizer, and those that have it only as a `tokenizer.json`.
_BYTE_LEVEL = ("roberta", "longformer")
_WORD_PIECE = ("bert", "distilbert", "electra")
_OF_FILE = {"BPE": (*_BYTE_LEVEL, "modernbert"), "WordPiece": (*_WORD_PIECE, "mpnet")}
_NO_SEGMENTS = (
    "Transformers gives this model no segments of pairs of texts; `read_pairs(True)` does, unless "
    "it is given segments=False."
)


def ends_between(family: EncoderFamily) -> int:
    """Number of end tokens between the texts of a pair."""
    return 2 if family.model_type in _TWO_ENDS else 1


def usually_reads_with(family: EncoderFamily, tokenizer: Tokenizer) -> bool:
    """Whether a family's published models have a tokenizer of this kind."""
    if not isinstance(tokenizer, PipelineTokenizer):
        return True
    kinds = (kind for kind, names in _OF_FILE.items() if family.model_type in names)
    return tokenizer.definition["model"].get("type") == next(kinds, "Unigram")


def convert_text_encoder(family: EncoderFamily, folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts a folder of transformers or sentence-transformers.

    Args:
        family: The family.
        folder: The folder.
        config: Content of its `config.json`.

    Returns:
        The task of the head, if the configuration names one that is supported; otherwise, and for
        folders of sentence-transformers, an `EmbeddingTask`. Other heads are not used, which a note
        reports.

    Raises:
        UserError: The folder lacks something, or uses something that is not supported.
    """
    model_folder = transformer_folder(folder)
    path = model_folder / CONFIG
    arguments = arguments_of(family, path, config)
    settings = embedding_settings(folder, arguments["max_length"])
    read = read_tokenizer(model_folder)
    tokenizer = read.tokenizer
    require(
        read.with_start and read.ends_between > 0,
        f"{model_folder}: `post_processor` must produce a start, a text and an end.",
        start=read.with_start,
        end=read.ends_between > 0,
    )
    kind = None if "pooling" in settings else family.head(config)
    if kind == MASKED and tokenizer.mask_id is None:
        kind = None
    notes = rows_without_token(
        model_folder, tokenizer.vocabulary_size, arguments["vocabulary_size"]
    )
    model, further, _ = convert_encoder(family, model_folder, config, kind, read.padding_id)
    notes, length = (*read.notes, *notes, *further), settings["max_length"]
    segments = has_segments(model) and read.segments
    if kind is None:
        if "pooling" not in settings and not any("Not used" in note for note in further):
            notes += _without_head(path, config)
        model = with_dense_layers(folder, model, settings)
        return Conversion(EmbeddingTask(model, tokenizer, **settings), notes)
    if kind == MASKED:
        return Conversion(MaskedLMTask(model, tokenizer, length), notes)
    if kind == OF_QUESTIONS:
        form = {"ends_between": read.ends_between, "segments": segments}
        with named_in_errors(model_folder):
            task = QuestionAnsweringTask(model, tokenizer, length, **form)
        return Conversion(task, notes)
    with named_in_errors(path):
        labels = label_names(config)
        if kind == OF_TEXTS:
            options = {"max_length": length, "with_start": True}
            if is_reranker(config, labels):
                task = RankTask(model, tokenizer, activation=score_activation(config), **options)
                task.read_pairs(True, read.ends_between, segments)
            else:
                task = kind_of_texts(config, labels)(model, tokenizer, labels, **options)
                task.ends_between = read.ends_between
                if has_segments(model) and not segments:
                    notes += (_NO_SEGMENTS,)
        else:
            task = TokenClassificationTask(model, tokenizer, labels, length)
        return Conversion(task, notes)


def _without_head(path: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    """A note on a named head without weights that is not supported."""
    names = [str(name) for name in config.get("architectures") or ()]
    heads = [name for name in names if not name.endswith("Model")]
    if not heads:
        return ()
    return (f"{path}: {', '.join(heads)} is not supported; this is its encoder without a head.",)


def written_tokenizer(
    family: EncoderFamily, tokenizer: Tokenizer, max_length: int, architecture: str
) -> dict[str, Any]:
    """The files of a tokenizer.

    Args:
        family: The family of the model.
        tokenizer: The tokenizer.
        max_length: Most tokens of a text.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The family has another kind of tokenizer, or one of its options has no
            counterpart.
    """
    if isinstance(tokenizer, PipelineTokenizer):
        return pipeline_files(tokenizer, max_length, architecture)
    if family.model_type in _BYTE_LEVEL:
        padding_id = family.defaults["pad_token_id"]
        return roberta_tokenizer_files(tokenizer, padding_id, max_length, architecture)
    if family.model_type in _WORD_PIECE:
        return word_piece_files(tokenizer, max_length, architecture)
    raise without_counterpart(architecture, tokenizer=type(tokenizer).__name__)

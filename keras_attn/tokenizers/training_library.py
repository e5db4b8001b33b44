"""Import of the library that trains vocabularies for BERT and GPT-2."""

from types import ModuleType

from keras_attn.validation import UserError


def training_library() -> ModuleType:
    """Imports `tokenizers`.

    Raises:
        UserError: It is not installed.
    """
    try:
        import tokenizers
    except ModuleNotFoundError:
        raise UserError(
            "Training this kind of tokenizer needs the `tokenizers` library: "
            "pip install 'keras_attn[tokenizers]'."
        ) from None
    return tokenizers

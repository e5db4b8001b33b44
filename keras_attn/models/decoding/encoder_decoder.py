"""Embeddings of encoder-decoders, and the check of their tokens."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.embedding.token import BiasedTokenEmbedding, TokenEmbedding
from keras_attn.tensors import Tensor
from keras_attn.validation import require


def token_embeddings(
    vocabulary_size: int,
    target_vocabulary_size: int | None,
    hidden_dim: int,
    output_bias: bool = False,
    **arguments: Any,
) -> tuple[TokenEmbedding, TokenEmbedding]:
    """Makes the embeddings of source and target, one for both where they share a vocabulary.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        hidden_dim: Size of a token's vector.
        output_bias: Whether the target's has a bias for each token's logit.
        **arguments: Further arguments of `TokenEmbedding`.

    Returns:
        The source's embedding and the target's.
    """
    target_kind = BiasedTokenEmbedding if output_bias else TokenEmbedding
    source_kind = target_kind if target_vocabulary_size is None else TokenEmbedding
    source = source_kind(vocabulary_size, hidden_dim, name="source_embedding", **arguments)
    if target_vocabulary_size is None:
        return source, source
    target = target_kind(target_vocabulary_size, hidden_dim, name="target_embedding", **arguments)
    return source, target


def tokens_of_rows(token_ids: Any, of_source: Any, beams: int) -> Tensor:
    """Converts the tokens of a step; there must be one for each hypothesis, as far as it is known.

    Args:
        token_ids: Integers (rows,).
        of_source: Tensors with one row for each source, if there are any, and `None`.
        beams: Number of hypotheses of each source.

    Returns:
        int32 (rows,).

    Raises:
        UserError: There are more or fewer.
    """
    token_ids = ops.convert_to_tensor(token_ids, "int32")
    rows = token_ids.shape[0]
    held = [part for part in keras.tree.flatten(of_source) if part is not None]
    sources = held[0].shape[0] if held else None
    require(
        rows is None or sources is None or rows == sources * beams,
        "`step` needs a token for each of the `beams` hypotheses that `initial_state` made room "
        "for.",
        tokens=rows,
        sources=sources,
        beams=beams,
    )
    return token_ids

"""The Synthesizer: a Transformer whose attention to its own sequence compares nothing."""

import keras

from keras_attn.layers.attention.synthesizers import (
    MEMBERS,
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
    SynthesizerMixture,
)
from keras_attn.layers.configuration import split_options
from keras_attn.models.transformer.sizes import HEADS_AND_POSITIONS, StackSizes
from keras_attn.models.transformer.transformer import Transformer
from keras_attn.validation import require, require_one_of

_ALONE = {
    "dense": DenseSynthesizer,
    "factorized_dense": FactorizedDenseSynthesizer,
    "random": RandomSynthesizer,
    "factorized_random": FactorizedRandomSynthesizer,
}


@keras.saving.register_keras_serializable(package="keras_attn")
class SynthesizerTransformer(Transformer):
    """An encoder-decoder with synthesized self-attention, over token ids, with 0 as padding.

    Encoder and decoder learn whom to attend to from each position by itself, or for all texts
    alike, instead of comparing positions. Attention to the source stays multi-head attention.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        scores: Kinds of scores: `"dense"`, `"factorized_dense"`, `"random"`, `"fixed_random"`,
            `"factorized_random"` or `"dot_product"`; several are mixed before the softmax.
        max_length: Greatest length of a source, and of a target.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        **kwargs: Fields of `StackSizes`, and further arguments of `Transformer`.

    Raises:
        UserError: A size is not positive, `num_heads` does not divide `hidden_dim`, or there are
            no such scores, or none at all.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = SynthesizerTransformer(11, **sizes, max_length=8)
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2005.00743.
    """

    sizes = StackSizes
    fixed_arguments = (
        "encoder_attention",
        "self_attention",
        "cross_attention",
        *HEADS_AND_POSITIONS,
    )

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        scores: tuple[str, ...] = ("random", "dot_product"),
        max_length: int = 256,
        *,
        attention_dropout: float = 0.0,
        **kwargs,
    ):
        scores = (scores,) if isinstance(scores, str) else tuple(scores)
        blocks, _ = split_options(StackSizes, kwargs)
        sizes = (blocks.num_heads, blocks.head_dim, max_length)
        attention = _synthesizer(scores, *sizes, dropout=attention_dropout)
        super().__init__(
            vocabulary_size,
            target_vocabulary_size,
            encoder_attention=attention,
            self_attention=attention,
            attention_dropout=attention_dropout,
            **kwargs,
        )


def _synthesizer(scores: tuple[str, ...], *sizes: int, dropout: float) -> keras.layers.Layer:
    """One kind as its own layer, several as a mixture."""
    require(len(scores) > 0, "A synthesizer needs `scores`.", scores=scores)
    for kind in scores:
        require_one_of("scores", kind, MEMBERS)
    if scores == ("fixed_random",):
        return RandomSynthesizer(*sizes, trainable_scores=False, dropout=dropout)
    if len(scores) == 1 and scores[0] in _ALONE:
        return _ALONE[scores[0]](*sizes, dropout=dropout)
    return SynthesizerMixture(*sizes, members=scores, dropout=dropout)

"""Language models with a memory of what came before: Transformer-XL, Compressive Transformer."""

import keras

from keras_attn.layers.attention.compressive_memory_attention import CompressiveMemoryAttention
from keras_attn.layers.attention.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.attention.segment_recurrence import SegmentRecurrence
from keras_attn.layers.configuration import split_options
from keras_attn.models.transformer.causal_transformer import CausalTransformer
from keras_attn.models.transformer.sizes import HEADS_AND_POSITIONS, StackSizes
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class CompressiveTransformer(CausalTransformer):
    """A decoder-only Transformer that reads segment by segment and remembers those before.

    Each block attends to the segment, to a memory of the states before it, and to a compressed
    memory of those before that; distances are relative. Each row is a stream of its own, of any
    length: time and memory grow linearly with it, and `step` needs a state of constant size.
    Without a compressed memory it is Transformer-XL.

    Args:
        vocabulary_size: Number of tokens.
        segment_length: Number of positions of a segment.
        memory_length: Number of states that each block remembers as they are.
        compressed_length: Number of compressed states that each block remembers; 0 for none.
        compression_rate: How many states become one.
        compression: `"convolution"`, `"dilated_convolution"`, `"mean"` or `"max"`, see
            `CompressiveMemoryAttention`. What it learns it learns from a loss of its own, which
            training adds.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        **kwargs: Fields of `StackSizes`, and further arguments of `CausalTransformer`.

    Raises:
        UserError: A size is not positive, `num_heads` does not divide `hidden_dim`, there is no
            such compression, or one by usage, or a segment is shorter than `compression_rate`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = CompressiveTransformer(
        ...     11, **sizes, segment_length=3, memory_length=3, compressed_length=2
        ... )
        >>> model({"token_ids": ids}).shape
        (2, 4, 11)

    References:
        Dai et al., 2019, https://arxiv.org/abs/1901.02860.
        Rae et al., 2019, https://arxiv.org/abs/1911.05507.
    """

    sizes = StackSizes
    fixed_arguments = ("self_attention", "recompute", *HEADS_AND_POSITIONS)

    def __init__(
        self,
        vocabulary_size: int,
        *,
        segment_length: int = 128,
        memory_length: int = 128,
        compressed_length: int = 128,
        compression_rate: int = 3,
        compression: str = "convolution",
        attention_dropout: float = 0.0,
        **kwargs,
    ):
        require(
            compressed_length >= 0,
            "`compressed_length` must not be negative.",
            compressed_length=compressed_length,
        )
        blocks, _ = split_options(StackSizes, kwargs)
        memory = (blocks.num_heads, blocks.head_dim, memory_length)
        if compressed_length:
            attention = CompressiveMemoryAttention(
                *memory, compressed_length, compression_rate, compression, dropout=attention_dropout
            )
        else:
            attention = RecurrentMemoryAttention(*memory, dropout=attention_dropout)
        super().__init__(
            vocabulary_size,
            self_attention=SegmentRecurrence(attention, segment_length),
            absolute_positions=False,
            **kwargs,
        )

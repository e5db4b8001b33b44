"""The decoder-only Transformer: a language model."""

from typing import Any

import keras

from keras_attn.models.backbone import Backbone
from keras_attn.models.stepwise_decoder import StepwiseDecoder
from keras_attn.models.token_stack import TokenStack
from keras_attn.models.transformer_sizes import TransformerSizes


@keras.saving.register_keras_serializable(package="keras_attn")
class CausalTransformer(Backbone):
    """A stack of decoder blocks without a source: every position sees those before it.

    The output projection is tied with the embedding. Token 0 is padding, at the end of a row.

    Args:
        vocabulary_size: Number of tokens.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks.
        dropout: Share dropped in training of the embeddings and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Pre-norm with a norm after the last block, instead of post-norm.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        absolute_positions: Whether positions are added to the embeddings at all; without them
            attention must see distances by itself.
        rotary_positions: Whether attention rotates its queries and keys by their positions as
            well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        self_attention: Attention layer to build that of every block from, multi-head by default.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, beginning with the start id.

    Returns:
        Logits of the next token at each position, (batch, length, vocabulary).

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, `num_heads` does not divide `hidden_dim`, or the attention cannot be causal.

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1 (the blocks).
        Liu et al., 2018, https://arxiv.org/abs/1801.10198, section 4.2.3 (decoder-only).
    """

    layer_arguments = ("self_attention",)

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 6,
        hidden_dim: int = 512,
        num_heads: int = 8,
        intermediate_dim: int = 2048,
        key_dim: int | None = None,
        value_dim: int | None = None,
        activation: str = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        norm_first: bool = False,
        learned_positions: int | None = None,
        absolute_positions: bool = True,
        rotary_positions: bool = False,
        recompute: bool = False,
        self_attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        sizes = TransformerSizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=key_dim,
            value_dim=value_dim,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            norm_first=norm_first,
            learned_positions=learned_positions,
            absolute_positions=absolute_positions,
            rotary_positions=rotary_positions,
            recompute=recompute,
            dtype=dtype,
        )

        # === Layers ===
        stack = TokenStack(
            sizes.embedding(vocabulary_size, "embedding"),
            sizes.positions("positions"),
            sizes.dropout("dropout"),
            sizes.decoder_blocks(self_attention, "block"),
            sizes.last_norm("norm"),
        )

        # === Functional graph ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        logits = stack.embedding(stack(token_ids), reverse=True)
        super().__init__({"token_ids": token_ids}, logits, name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self.embedding = stack.embedding
        self.positions = stack.positions
        self.blocks = stack.blocks
        self.norm = stack.norm
        self.max_length = sizes.max_length(self_attention)
        self._decoder = StepwiseDecoder(stack, self.max_length)
        self._keep_arguments(
            sizes.dtype,
            vocabulary_size=vocabulary_size,
            self_attention=self_attention,
            **sizes.config,
        )

    def initial_state(self, batch_size, max_length: int | None = None, beams: int = 1) -> dict:
        """Makes the state from which `step` generates from nothing.

        Args:
            batch_size: Number of sources, a number or a scalar int32 tensor. Here a source is
                nothing but a row of its own.
            max_length: Number of positions to make room for, as JAX and XLA need it; `None`, on
                TensorFlow without XLA, for caches that grow.
            beams: Number of hypotheses of each source, those of a beam search.

        Returns:
            `{"source": …, "hypothesis": …}`, both with one row for each source. The keys and
            values of all hypotheses belong to the source (`keras_attn.ops.decoding_cache`);
            states of constant size, such as those of linear attention, to a hypothesis each.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow, or the attention does
                not decode step by step.
        """
        return self._decoder.initial_state(batch_size, max_length, beams)

    def prefill(
        self, prompt_ids, max_length: int | None = None, beams: int = 1
    ) -> tuple[Any, dict]:
        """Makes the state from which `step` continues prompts, all of whose tokens run at once.

        The last token of each prompt is left to the first step, so that a search can begin with
        it: `start_ids, state = model.prefill(prompt_ids)`, `greedy_search(model.step, state,
        start_ids, …)`. The prompts' keys and values are held once for all hypotheses.

        Args:
            prompt_ids: int32 (batch, length), at least one token a row, and 0 after its end.
            max_length: Number of positions to make room for from the prompts' last tokens on,
                the `max_length` of the search, as JAX and XLA need it; `None`, on TensorFlow
                without XLA, for caches that grow.
            beams: Number of hypotheses of each prompt, those of a beam search.

        Returns:
            The last token of each prompt, int32 (batch,), and the state.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow, the attention does not
                decode after a prompt, or there are not as many positions.
        """
        return self._decoder.prefill(prompt_ids, max_length, beams)

    def step(self, token_ids, state: dict, index) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), the token at position `index` of each hypothesis; the
                hypotheses of one source stand together.
            state: What `initial_state`, `prefill` or the step before returned, its hypothesis part
                with one row for each hypothesis.
            index: Position of the tokens, after a prompt counted from its last token, int32: a
                scalar, or with one hypothesis a source and a `max_length` one for each row
                (rows,).

        Returns:
            Logits (rows, vocabulary), and the state with this position added.
        """
        return self._decoder.step(token_ids, state, index)

"""Base class of decoder-only models: logits from a stack, and decoding step by step."""

from typing import Any

from keras_attn.models.backbone import Backbone
from keras_attn.models.configured_model import id_inputs
from keras_attn.models.decoding.incremental_decoder import IncrementalDecoder
from keras_attn.models.decoding.token_stack import TokenStack


class LanguageModel(Backbone):
    """A model from token ids to logits of the next token at each position.

    The output projection is tied with the embedding. Token 0 is padding, at the end of a row.

    Args:
        stack: The layers, in which no position sees later ones.
        max_length: Greatest number of positions, or `None`.
        **kwargs: Further arguments of `Backbone`.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, beginning with the start id.

    Returns:
        Logits of the next token at each position, (batch, length, vocabulary).
    """

    fixed_arguments = (*Backbone.fixed_arguments, "stack", "max_length")

    def __init__(self, stack: TokenStack, max_length: int | None, **kwargs):
        # === Functional graph ===
        inputs = id_inputs("token_ids")
        logits = stack.projection(stack(inputs["token_ids"]), reverse=True)
        super().__init__(inputs, logits, **kwargs)

        self._take_token_parts(stack, max_length)
        self._decoder = IncrementalDecoder(stack, max_length)

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
            values of all hypotheses belong to the source (`keras_attn.ops.decoding.cache`);
            states of constant size, such as those of linear attention, to a hypothesis each.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow, or the attention does
                not decode step by step.
        """
        return self._decoder.initial_state(batch_size, max_length, beams)

    def prefill(
        self, prompt_ids, max_length: int | None = None, beams: int = 1
    ) -> tuple[Any, dict]:
        """Makes the state from which `step` continues prompts, in one call for all their tokens.

        The last token of each prompt is left to the first step, so that a search can begin with
        it: `start_ids, state = model.prefill(prompt_ids)`, `greedy_search(model.step, state,
        start_ids, …)`. The prompts' keys and values are held once for all hypotheses.

        Args:
            prompt_ids: int32 (batch, length), at least one token a row. 0 is padding at any
                position: prompts padded on the left, or with 0 between tokens, continue as their
                tokens alone do.
            max_length: Number of positions to make room for from the prompts' last tokens on,
                at least the `max_length` of the search, as JAX and XLA need it; `None`, on
                TensorFlow without XLA, for caches that grow.
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
                hypotheses of one source are adjacent.
            state: What `initial_state`, `prefill` or the step before returned, its hypothesis part
                with one row for each hypothesis.
            index: Position of the tokens, after a prompt counted from its last token, int32: a
                scalar, or with one hypothesis a source and a `max_length` one for each row
                (rows,).

        Returns:
            Logits (rows, vocabulary), and the state with this position added. Beyond the
            `max_length` of the state logits are NaN where the index is traced.

        Raises:
            UserError: The index is known, and beyond the `max_length` of the state.
        """
        return self._decoder.step(token_ids, state, index)

"""The call and the decoding steps that attention layers have in common."""

import inspect
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_inputs import AttentionInputs
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float, without_hidden
from keras_attn.ops import masks
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_rate


class AttentionLayer(CompositeLayer):
    """Reads the masks of a call, and leaves the attention itself to its subclasses (`_attend`).

    Args:
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, target, features), of the layer's compute dtype.
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features); `value` by default.
        query_mask: Boolean (batch, target), `False` where the query is padding.
        value_mask: Boolean (batch, source), `False` where the value is padding.
        key_mask: Boolean (batch, source), `False` where the key is padding.
        attention_mask: Boolean (batch, target, source) or (batch, heads or 1, target, source),
            `True` where a query may attend to a key.
        return_attention_scores: Whether to return the attention probabilities too.
        training: Whether dropout is applied.
        use_causal_mask: Whether a query attends only to keys up to its own position, the last
            query being at the last key.

    Returns:
        The output (batch, target, features).
    """

    can_be_causal = True
    can_cross = True

    def __init__(self, **kwargs):
        relative = kwargs.pop("relative_positions", None)
        require(
            relative is None,
            f"{type(self).__name__} does not take `relative_positions`: add positions to its "
            "inputs, as SinusoidalPositionEncoding and LearnedPositionEmbedding do.",
            relative_positions=type(relative).__name__,
        )
        super().__init__(**kwargs)

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
    ):
        inputs = (query, value, key, query_mask, value_mask, key_mask, attention_mask)
        return self._call_checked(inputs, return_attention_scores, training, use_causal_mask)

    def _call_checked(
        self, inputs: tuple, return_attention_scores: bool, *options: Any, **further: Any
    ) -> Any:
        """Attends with boolean masks. Traced masks of other numbers make the outputs NaN."""
        inputs = AttentionInputs(*inputs)
        self._require_inputs(inputs)
        if return_attention_scores:  # which are refused where there are none
            self._scores_shape(inputs.query.shape, inputs.value.shape)
        inputs, valid = inputs.with_boolean_masks()
        result = self._attend(inputs, return_attention_scores, *options, **further)
        return masks.unless_refused(result, valid)

    @property
    def _has_one_length(self) -> bool:
        """Whether value and key must be as long as the query."""
        return not self.can_cross

    def _require_shapes(self, **shapes: tuple | None) -> None:
        """Raises unless the shapes of the inputs, the query first, are those of sequences."""
        for name, shape in shapes.items():
            if shape is None:
                continue
            named = {f"{name}_shape": shape}
            require(len(shape) >= 3, f"`{name}` must be (batch, length, features).", **named)
            lengths = {shapes["query"][1], shape[1]} - {None}
            require(
                len(lengths) < 2 or not self._has_one_length,
                f"{type(self).__name__} needs a `{name}` as long as the `query`.",
                **named | {"query_shape": shapes["query"]},
            )

    def _require_inputs(self, inputs: AttentionInputs) -> None:
        """Raises unless the tensors of a call fit together."""
        inputs.require_fitting(getattr(self, "num_heads", 1), same_length=self._has_one_length)

    def _attend(
        self,
        inputs: AttentionInputs,
        return_attention_scores: bool,
        training: bool | None,
        use_causal_mask: bool,
    ) -> Any:
        """What `call` returns, given boolean masks that fit.

        Scores are asked for only where `_scores_shape` gives their shape.
        """
        raise NotImplementedError

    def _set_dropout(self, dropout: float, seed: int | None) -> None:
        require_rate(dropout=dropout)
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if dropout else None

    def _dropping(self, training: bool | None) -> dict[str, Any]:
        """Arguments of the functions that drop attention probabilities."""
        return {"dropout": self.dropout if training else 0.0, "seed": self.seed_generator}

    def compute_output_spec(self, *args, **kwargs):
        given = inspect.signature(self.call).bind(*args, **kwargs).arguments
        inputs = AttentionInputs(*map(given.get, AttentionInputs._fields))
        self._require_inputs(inputs)
        shapes = (inputs.query.shape, inputs.value.shape)
        output = keras.KerasTensor(self.compute_output_shape(*shapes), self.compute_dtype)
        if not given.get("return_attention_scores"):
            return output
        return output, keras.KerasTensor(self._scores_shape(*shapes), self.compute_dtype)

    def _scores_shape(self, query_shape: tuple, value_shape: tuple) -> tuple:
        """The shape of attention scores; raises where the mechanism has none."""
        self._refuse_scores()

    def _refuse_causal(self, use_causal_mask: bool, reason: str) -> None:
        """Raises where a mechanism without a causal form is to be causal."""
        require(
            not use_causal_mask,
            f"{reason}: there is no causal form.",
            use_causal_mask=use_causal_mask,
        )

    def _refuse_scores(self, **settings: Any) -> None:
        """Raises because these settings build no scores that could be returned."""
        require(
            False,
            f"{type(self).__name__} builds no matrix of scores, so it cannot return them.",
            return_attention_scores=True,
            **settings,
        )


class DecodingSteps:
    """Self-attention to positions that come one after the other."""

    def initial_cache(self, batch_size: Any, max_length: int | None = None, beams: int = 1) -> Any:
        """Makes the state before the first position, to be filled by `attend_step`.

        Args:
            batch_size: Number of sequences, or of sources with several hypotheses each; a number or
                a scalar int32 tensor.
            max_length: Number of positions that a cache can hold, as JAX and XLA need it; `None`,
                on TensorFlow without XLA, for one that grows. A state of constant size ignores it.
            beams: Number of hypotheses of each source. Mechanisms whose state is not a
                `keras_attn.ops.decoding.cache` ignore it: there each hypothesis is a sequence.

        Returns:
            The cache or state.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow, or more than the
                mechanism can attend to.
        """
        raise NotImplementedError

    def attend_prompt(self, query: Tensor, cache: Any, real: Tensor) -> tuple[Any, Any]:
        """Attends causally within a prompt, which the cache then holds.

        Args:
            query: Tensor (batch, length, features), the inputs at positions 0, 1, 2, …
            cache: The result of `initial_cache`.
            real: Boolean (batch, length), the positions to be held: the first ones of each
                sequence.

        Returns:
            The output (batch, length, features), and the cache, in which step 0 follows the last
            position held.

        Raises:
            UserError: The prompt is longer than the mechanism can attend to.
        """
        raise NotImplementedError

    def attend_step(
        self, query: Tensor, cache: Any, index: Tensor, ancestor_mask: Tensor = None
    ) -> tuple[Any, Any]:
        """Attends from one new position to itself and the cached ones before it.

        Args:
            query: Tensor (batch, beams, features), the input at position `index`, the hypotheses
                of one source side by side; (batch, 1, features) without a beam search.
            cache: The cache with the positions before `index`, or the state after them, with a row
                for each hypothesis.
            index: Position of the query, after a prompt counted from its end, int32: a scalar, or
                one for each row of a state, or with one beam and a cache of a fixed length one for
                each sequence (batch,).
            ancestor_mask: Boolean (batch, 1, beams, slots), which slots of a cache belong to which
                hypothesis, this position included. May be left out with one beam. A state ignores
                it.

        Returns:
            The output (batch, beams, features), and the cache with this position added.
        """
        raise NotImplementedError


class SourceSteps:
    """Attention of the steps of a decoder to a source that stays the same."""

    def project_source(self, value: Tensor, key: Tensor = None, value_mask: Tensor = None) -> dict:
        """Computes what every step of decoding needs of a source, once.

        Args:
            value: Tensor (batch, source, features).
            key: Tensor (batch, source, features); `value` by default.
            value_mask: Boolean (batch, source), `False` where the source is padding.

        Returns:
            Tensors by name, batch first: heads or compared features of the keys and of the values
            with the `"mask"` (batch, 1, 1, source) where `value_mask` is given, or their sums.
        """
        raise NotImplementedError

    def attend_source(self, query: Tensor, source: dict) -> Any:
        """Attends to a source projected by `project_source`.

        Args:
            query: Tensor (batch, target, features). Several hypotheses of one source are side by
                side along `target`.
            source: The result of `project_source`.

        Returns:
            The output (batch, target, features).
        """
        raise NotImplementedError

    def _visible_source(
        self, value: Tensor, key: Tensor, value_mask: Tensor
    ) -> tuple[Any, Any, Any]:
        """Value and key of a source without its padding, and its mask as a boolean one."""
        value_mask, valid = masks.boolean_masks(value_mask=value_mask)
        value, key = (x if x is None else as_float(x, self.compute_dtype) for x in (value, key))
        value = masks.unless_refused(value, valid)
        return without_hidden(value, value_mask), without_hidden(key, value_mask), value_mask

    def _masked_source(self, source: dict, value_mask: Tensor, axes: tuple[int, ...]) -> dict:
        """A projected source with its mask.

        Args:
            source: `"key"` and `"value"`.
            value_mask: Boolean (batch, source), or `None`.
            axes: The axes by which the mask is expanded to the rank of the value.

        Returns:
            The source; with a mask its values at padding are 0 and `"mask"` is (batch, 1, 1,
            source).
        """
        if value_mask is None:
            return source
        # Nothing of padding is left, so that a source of nothing else has a context of zeros.
        kept = ops.cast(ops.expand_dims(value_mask, axes), source["value"].dtype)
        mask = ops.expand_dims(value_mask, (1, 2))
        return source | {"value": ops.multiply(source["value"], kept), "mask": mask}

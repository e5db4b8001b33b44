"""Multi-head attention, as in "Attention Is All You Need"."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_axes import AttendedAxes
from keras_attn.layers.attention.attention_inputs import reads_masks
from keras_attn.layers.attention.capture import is_other, show_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention, require_no_scores
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.layer_configs import deserialize_layers, serialize_layer
from keras_attn.layers.positions.relative_positions import copy_positions
from keras_attn.ops import masks
from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.decoding.cache import (
    continued,
    initial_cache,
    query_position,
    slot_positions,
    visible_slots,
)
from keras_attn.validation import require, require_one_of, require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class MultiHeadAttention(BaseMultiHeadAttention):
    """Multi-head scaled dot-product attention.

    A position that the masks hide from every query, such as padding, never reaches a real one,
    whatever it holds, NaN included, neither in outputs nor in gradients. Where an `attention_mask`
    differs from query to query, values must be finite.

    Takes the place of `keras.layers.MultiHeadAttention` in call and constructor (the weights are
    laid out otherwise). What differs: a query that may attend to nothing has a zero context with
    dropout and without; an explicit `query_mask` counts; the causal mask is aligned to the last
    key; scores and softmax are computed in float32 or wider, so float16 stays finite; queries may
    share key and value heads; long sequences are attended to in chunks, in memory linear in their
    length; keys and values can be cached for decoding.

    Args:
        num_heads: Number of query heads.
        key_dim: Size of each head's query and key.
        value_dim: Size of each head's value; `key_dim` by default.
        dropout: Share of the attention probabilities dropped in training, in [0, 1).
        use_bias: Whether the projections have biases.
        output_shape: Size of the output's features, a number or a tuple; those of the query by
            default.
        attention_axes: Axes of the inputs to attend over, a number or a tuple; all between batch
            and features by default. Inputs may then be (batch, ..., features): each position of
            the other axes attends for itself.
        sliding_window: If given, a query attends only to keys less than this many positions away.
        flash_attention: `True` never builds the score matrix: a fused kernel attends where there
            is one, chunks do elsewhere. `False` builds it. `None` takes the kernel where there is
            one, and chooses by size elsewhere (see `keras_attn.ops.dot_product_attention`), unless
            `keras.config.disable_flash_attention()` was called before the layer's call is computed
            or traced: then it is as `False`. `True` and `False` take precedence over that setting.
        kernel_initializer: Initialiser of the kernels.
        bias_initializer: Initialiser of the biases.
        kernel_regularizer: Regulariser of the kernels.
        bias_regularizer: Regulariser of the biases.
        activity_regularizer: Regulariser of the output.
        kernel_constraint: Constraint on the kernels.
        bias_constraint: Constraint on the biases.
        use_gate: Whether a sigmoid gate computed from the query multiplies the context.
        seed: Seed of the dropout, a whole number.
        num_key_value_heads: Number of key and value heads, a divisor of `num_heads`; as many as
            query heads by default, 1 for multi-query attention.
        relative_positions: Layer to build from what lets self-attention see distances:
            `RotaryEmbedding`, `RelativePositionBias` or `AlibiBias`; none by default.
        output_initializer: Initialiser of the output projection's kernel, where it is not
            `kernel_initializer`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        query: Tensor (batch, target, features), of the layer's compute dtype.
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features); `value` by default.
        query_mask: Boolean (batch, target), `False` where the query is padding.
        value_mask: Boolean (batch, source), `False` where the value is padding.
        key_mask: Boolean (batch, source), `False` where the key is padding.
        attention_mask: Boolean (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), `True` where a query may attend to a key. With more
            axes (batch, other axes, heads, target axes, source axes), of which heads, other axes
            and batch may be left out; the other masks then have their input's shape without the
            features. All masks may hold 1 and 0 of any number type instead; other numbers are
            refused: by an error, or where a graph is traced by an output of NaN.
        return_attention_scores: Whether to return the attention probabilities too.
        training: Whether dropout is applied.
        use_causal_mask: Whether a query attends only to keys up to its own position, the last
            query standing at the last key.

    Returns:
        The output (batch, target, features), and with `return_attention_scores` the
        probabilities (batch, num_heads, target, source); with more axes (batch, other axes,
        num_heads, target axes, source axes).

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), `num_key_value_heads` does
            not divide `num_heads`, ranks do not fit `attention_axes`, an order of positions
            (causal mask, sliding window, relative positions) is asked for over several axes, or
            chunks are together with scores or with relative positions that add to them.

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.2.
        Ainslie et al., 2023, https://arxiv.org/abs/2305.13245 (grouped queries).
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | tuple[int, ...] | None = None,
        attention_axes: int | tuple[int, ...] | None = None,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        use_gate: bool = False,
        seed: int | None = None,
        num_key_value_heads: int | None = None,
        relative_positions: keras.layers.Layer | None = None,
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim=value_dim,
            use_bias=use_bias,
            output_shape=output_shape,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            output_initializer=output_initializer,
            **kwargs,
        )
        num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        require_positive(num_key_value_heads=num_key_value_heads)
        require_rate(dropout=dropout)
        require(
            num_heads % num_key_value_heads == 0,
            "`num_key_value_heads` must divide `num_heads`.",
            num_key_value_heads=num_key_value_heads,
            num_heads=num_heads,
        )
        require_one_of("flash_attention", flash_attention, (None, True, False))
        if sliding_window is not None:
            require_positive(sliding_window=sliding_window)
        self.num_key_value_heads = num_key_value_heads
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if dropout else None
        self.attention_axes = attention_axes
        self.sliding_window = sliding_window
        self.flash_attention = flash_attention
        self.use_gate = use_gate
        self.relative_positions = copy_positions(
            relative_positions, num_heads, key_dim, self.dtype_policy
        )
        if self.relative_positions is not None:
            require(
                not (flash_attention and self.relative_positions.adds_bias),
                "Flash attention adds nothing to scores: these `relative_positions` need "
                "`flash_attention` None or False.",
                relative_positions=type(relative_positions).__name__,
                flash_attention=flash_attention,
            )

    def build(self, query_shape, value_shape=None, key_shape=None):
        AttendedAxes.of(self.attention_axes, len(query_shape))
        for name, shape in (("value", value_shape), ("key", key_shape)):
            require(
                shape is None or len(shape) == len(query_shape),
                f"`{name}` must have as many axes as `query`.",
                **{f"{name}_shape": shape, "query_shape": query_shape},
            )
        _require_equal_lengths(value_shape, key_shape)
        super().build(query_shape, value_shape, key_shape)
        if self.relative_positions is not None and not self.relative_positions.built:
            self.relative_positions.build(None)

    def _require_inputs(self, query, *inputs):
        # Over other axes than one it is folded inputs that have to fit.
        if AttendedAxes.of(self.attention_axes, len(query.shape)).is_plain:
            super()._require_inputs(query, *inputs)

    def _head_sizes(self):
        sizes = super()._head_sizes() | {
            "key": (self.num_key_value_heads, self.key_dim),
            "value": (self.num_key_value_heads, self.value_dim),
        }
        return sizes | ({"gate": (self.num_heads, self.value_dim)} if self.use_gate else {})

    @reads_masks
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
        axes = AttendedAxes.of(self.attention_axes, len(query.shape))
        if not axes.is_plain:
            return self._call_folded(
                axes,
                (query, value, key),
                (query_mask, value_mask, key_mask),
                attention_mask,
                return_attention_scores,
                training,
                use_causal_mask,
            )
        inputs = self._visible(query, value, key, query_mask, value_mask, key_mask, attention_mask)
        heads = self._positioned(self._project(*inputs, training))
        attention_mask = self._windowed(
            attention_mask, heads["query"], heads["key"], use_causal_mask
        )
        mask = masks.separate_masks(query_mask, value_mask, key_mask, attention_mask)
        return self._attend(
            heads,
            mask,
            training,
            return_attention_scores,
            use_causal_mask,
            crosses=is_other(query, value),
        )

    def _call_folded(
        self, axes, inputs, input_masks, attention_mask, return_scores, training, use_causal_mask
    ):
        require(
            len(axes.axes) == 1
            or not (use_causal_mask or self.sliding_window or self.relative_positions),
            "A causal mask, a sliding window or relative positions need a single attended axis.",
            attention_axes=axes.axes,
            use_causal_mask=use_causal_mask,
            sliding_window=self.sliding_window,
            relative_positions=self.relative_positions,
        )
        query, value, _ = inputs
        # An input in two roles stays one tensor, so that they share a matrix product.
        folded = {id(x): axes.fold(x) for x in inputs if x is not None}
        names = ("query_mask", "value_mask", "key_mask")
        arguments = [axes.fold_mask(*pair) for pair in zip(names, input_masks, strict=True)]
        attention_mask = axes.fold_attention_mask(attention_mask, query, value)
        inputs = (None if x is None else folded[id(x)] for x in inputs)
        inputs = self._visible(*inputs, *arguments, attention_mask)
        heads = self._project(*inputs, training)
        heads = self._positioned(heads)
        attention_mask = self._windowed(
            attention_mask, heads["query"], heads["key"], use_causal_mask
        )
        mask = masks.separate_masks(*arguments, attention_mask)
        result = self._attend(
            heads,
            mask,
            training,
            return_scores,
            use_causal_mask,
            crosses=is_other(query, value),
        )
        if not return_scores:
            return axes.unfold(result, query)
        output, scores = result
        return axes.unfold(output, query), axes.unfold_scores(scores, query, value)

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        """Makes the empty cache of self-attention for decoding, to be filled by `attend_step`.

        Args:
            batch_size: Number of sequences, or of sources of which several hypotheses are
                decoded; a number or a scalar int32 tensor.
            max_length: Number of positions the cache can hold, as JAX and XLA need it; `None`,
                on TensorFlow without XLA, for a cache that grows.
            beams: Number of hypotheses of each source.

        Returns:
            The cache, a tuple of `key` (batch, key heads, slots, key_dim) and `value`: see
            `keras_attn.ops.decoding.cache`.

        Raises:
            UserError: No `max_length` on another backend than TensorFlow.
        """
        widths = (self.key_dim, self.value_dim)
        heads = self.num_key_value_heads
        return initial_cache(batch_size, heads, widths, self.compute_dtype, max_length, beams)

    def attend_prompt(self, query, cache, real):
        """Attends causally within a prompt, which the cache then holds.

        Args:
            query: Tensor (batch, length, features), the inputs at positions 0, 1, 2, …
            cache: What `initial_cache` made.
            real: Boolean (batch, length), which positions are to be held: the first ones of each
                sequence.

        Returns:
            The output (batch, length, features), and the cache, in which step 0 follows the last
            position held.
        """
        query = without_hidden(query, real)
        heads = self._positioned(self._project(query, query, None))
        window = self._windowed(None, heads["query"], heads["key"], use_causal_mask=True)
        mask = masks.separate_masks(attention_mask=window)
        output = self._attend(heads, mask, is_causal=True)
        return output, continued(cache, heads["key"], heads["value"], real)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        """Attends from one new position to itself and the cached ones before it.

        Args:
            query: Tensor (batch, beams, features), the input at position `index`, the hypotheses
                of one source side by side; (batch, 1, features) without a beam search.
            cache: The cache with the positions before `index`.
            index: Position of the query, after a prompt counted from its end, int32: a scalar, or
                with one beam and a cache of a fixed length one for each sequence (batch,).
            ancestor_mask: Boolean (batch, 1, beams, slots), which slots belong to which
                hypothesis, this position included. May be left out with one beam.

        Returns:
            The output (batch, beams, features) and the cache with this position added.
        """
        heads = self._project(query, query, None)
        position = query_position(cache, index)
        query_heads = heads["query"]
        if self.relative_positions is not None:
            moved = self.relative_positions.transform(query_heads, heads["key"], position, position)
            heads |= dict(zip(("query", "key"), moved, strict=True))
        cache = cache.append(heads["key"], heads["value"], index)
        beams = query.shape[1]
        if self.relative_positions is not None:
            at_slot = slot_positions(cache, beams)
            heads["bias"] = self.relative_positions.bias(query_heads, position, at_slot)
        mask = visible_slots(cache, position, beams, ancestor_mask, self.sliding_window)
        heads |= {"key": cache.key, "value": cache.value}
        return self._attend(heads, mask, every_query_attends=True), cache

    def project_source(self, value, key=None, value_mask=None) -> dict:
        """Projects the source of cross-attention once, for every step of decoding.

        Args:
            value: Tensor (batch, source, features).
            key: Tensor (batch, source, features); `value` by default.
            value_mask: Boolean (batch, source), `False` where the source is padding.

        Returns:
            `{"key": (batch, key heads, source, key_dim), "value": …, "mask": …}`, of which
            "mask", boolean (batch, 1, 1, source), is there where `value_mask` is given.
        """
        require(
            self.relative_positions is None,
            "`relative_positions` are for self-attention, not for attention to another sequence.",
            relative_positions=self.relative_positions,
        )
        value_mask, valid = masks.boolean_masks(value_mask=value_mask)
        value = masks.unless_refused(value, valid)
        value, key = (without_hidden(x, value_mask) for x in (value, key))
        heads = self._project(None, value, key)
        source = {"key": heads["key"], "value": heads["value"]}
        if value_mask is None:
            return source
        real = ops.expand_dims(value_mask, (1, 2))
        # Nothing of padding is left, so that a source of nothing else has a context of zeros.
        kept = ops.cast(ops.swapaxes(real, -1, -2), source["value"].dtype)
        return source | {
            "value": ops.multiply(source["value"], kept),
            "mask": real,
        }

    def attend_source(self, query, source: dict):
        """Attends to a source projected by `project_source`.

        Args:
            query: Tensor (batch, target, features). Where several hypotheses share a source,
                they stand side by side along `target`.
            source: What `project_source` returned.

        Returns:
            The output (batch, target, features).
        """
        heads = self._project(query, None, None) | source
        mask = source.get("mask")
        return self._attend(heads, mask, every_query_attends=True, crosses=True)

    def _positioned(self, heads) -> dict:
        """Heads that see distances, the last query standing at the last key."""
        if self.relative_positions is None:
            return heads
        query, key = heads["query"], heads["key"]
        queries, keys = ops.shape(query)[2], ops.shape(key)[2]
        at_key = ops.arange(keys, dtype="int32")
        at_query = ops.arange(queries, dtype="int32") + (keys - queries)
        bias = self.relative_positions.bias(query, at_query, at_key)
        query, key = self.relative_positions.transform(query, key, at_query, at_key)
        return heads | {"query": query, "key": key, "bias": bias}

    def _attend(
        self,
        heads,
        mask,
        training=False,
        return_scores=False,
        is_causal=False,
        every_query_attends=False,
        crosses=False,
    ):
        attend = partial(
            dot_product_attention,
            heads["query"],
            heads["key"],
            mask=mask,
            bias=heads.get("bias"),
            is_causal=is_causal,
            implementation=self._implementation(),
            every_query_attends=every_query_attends,
        )
        result = attend(
            heads["value"],
            dropout=self.dropout if training else 0.0,
            seed=self.seed_generator,
            return_scores=return_scores,
        )
        pattern = {} if self.sliding_window is None else {"window": self.sliding_window}
        facts = {"crosses": crosses, "is_causal": is_causal, "pattern": pattern}
        show_attention(self, attend, heads["value"], mask, **facts)
        context, scores = result if return_scores else (result, None)
        if self.use_gate:
            context = ops.multiply(context, ops.sigmoid(heads["gate"]))
        output = self._project_back(context, training)
        return (output, scores) if return_scores else output

    def _implementation(self) -> str:
        if self.flash_attention is None and keras.config.is_flash_attention_enabled() is False:
            return "dense"
        return {None: "auto", True: "flash", False: "dense"}[self.flash_attention]

    def _windowed(self, attention_mask, query, key, use_causal_mask):
        if self.sliding_window is None:
            return attention_mask
        target, source = ops.shape(query)[2], ops.shape(key)[2]
        # Like the causal mask, and only with it, the window is aligned to the last key.
        first = source - target if use_causal_mask else 0
        distance = ops.arange(source) - ops.expand_dims(ops.arange(target) + first, 1)
        window = ops.less(ops.abs(distance), self.sliding_window)[None]  # (1, target, source)
        if attention_mask is None:
            return window
        if len(attention_mask.shape) == 4:
            window = ops.expand_dims(window, 0)
        return ops.logical_and(attention_mask, window)

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        _require_equal_lengths(value_shape, key_shape)
        return super().compute_output_shape(query_shape, value_shape, key_shape)

    def _scores_shape(self, query_shape, value_shape):
        require_no_scores(self, return_attention_scores=self.flash_attention is True)
        axes = AttendedAxes.of(self.attention_axes, len(query_shape))
        return axes.scores_shape(query_shape, value_shape, self.num_heads)

    def get_config(self):
        return super().get_config() | {
            "num_key_value_heads": self.num_key_value_heads,
            "dropout": self.dropout,
            "seed": self.seed,
            "attention_axes": self.attention_axes,
            "sliding_window": self.sliding_window,
            "flash_attention": self.flash_attention,
            "use_gate": self.use_gate,
            "relative_positions": serialize_layer(self.relative_positions),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**deserialize_layers(config, "relative_positions"))


def _require_equal_lengths(value_shape: tuple | None, key_shape: tuple | None) -> None:
    if value_shape is None or key_shape is None:
        return
    pairs = zip(value_shape[1:-1], key_shape[1:-1], strict=False)  # `build` compares ranks
    require(
        all(one == other or None in (one, other) for one, other in pairs),
        "The lengths of `value` and `key` must be equal.",
        value_shape=tuple(value_shape),
        key_shape=tuple(key_shape),
    )

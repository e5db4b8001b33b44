"""Multi-head attention, as in "Attention Is All You Need"."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_axes import AttendedAxes
from keras_attn.layers.attention.attention_layer import DecodingSteps, SourceSteps
from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.keras_layers import (
    copy_keras_weights,
    keras_arguments,
    keras_shapes,
)
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.ops import masks
from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.decoding.cache import (
    continued,
    initial_cache,
    query_position,
    slot_positions,
    visible_slots,
)
from keras_attn.validation import require, require_one_of, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class MultiHeadAttention(DecodingSteps, SourceSteps, BaseMultiHeadAttention):
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
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        attention_axes: Axes of the inputs to attend over, a number or a tuple; all between batch
            and features by default. Inputs may then be (batch, ..., features): each position of
            the other axes attends for itself.
        sliding_window: If given, a query attends only to keys less than this many positions away.
        flash_attention: `True` never builds the score matrix: a fused kernel attends where there
            is one, chunks do elsewhere. `False` builds it. `None` takes the kernel where there is
            one, and chooses by size elsewhere (see `keras_attn.ops.dot_product_attention`), unless
            `keras.config.disable_flash_attention()` was called before the layer's call is computed
            or traced: then it is as `False`. `True` and `False` take precedence over that setting.
        use_gate: Whether a sigmoid gate computed from the query multiplies the context.
        seed: Seed of the dropout, a whole number.
        num_key_value_heads: Number of key and value heads, a divisor of `num_heads`; as many as
            query heads by default, 1 for multi-query attention.
        relative_positions: Layer that makes self-attention depend on distances; a copy is
            made: `RotaryEmbedding`, `RelativePositionBias` or `AlibiBias`; none by default.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        attention_mask: Boolean (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), `True` where a query may attend to a key. With more
            axes (batch, other axes, heads, target axes, source axes), where heads, other axes
            and batch may be left out; the other masks then have their input's shape without the
            features. All masks may hold 1 and 0 of any number type instead; other numbers are
            refused: by an error, or where a graph is traced by an output of NaN.

    Returns:
        The output (batch, target, features), and with `return_attention_scores` the
        probabilities (batch, num_heads, target, source); with more axes (batch, other axes,
        num_heads, target axes, source axes).

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), `num_key_value_heads` does
            not divide `num_heads`, ranks do not fit `attention_axes`, an order of positions
            (causal mask, sliding window, relative positions) is asked for over several axes, or
            chunks are together with scores or with relative positions that add to them.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=4)
        >>> output, scores = layer(x, x, use_causal_mask=True, return_attention_scores=True)
        >>> output.shape, scores.shape
        ((2, 5, 8), (2, 2, 5, 5))

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
        *,
        use_gate: bool = False,
        seed: int | None = None,
        num_key_value_heads: int | None = None,
        relative_positions: keras.layers.Layer | None = None,
        **kwargs,
    ):
        sizes = {"value_dim": value_dim, "use_bias": use_bias, "output_shape": output_shape}
        super().__init__(num_heads, key_dim, **sizes, **kwargs)
        num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        require_positive(num_key_value_heads=num_key_value_heads)
        require(
            num_heads % num_key_value_heads == 0,
            "`num_key_value_heads` must divide `num_heads`.",
            num_key_value_heads=num_key_value_heads,
            num_heads=num_heads,
        )
        require_one_of("flash_attention", flash_attention, (None, True, False))
        if sliding_window is not None:
            require_positive(sliding_window=sliding_window)
        self._set_dropout(dropout, seed)
        self.num_key_value_heads = num_key_value_heads
        self.attention_axes = attention_axes
        self.sliding_window = sliding_window
        self.flash_attention = flash_attention
        self.use_gate = use_gate
        self._set_positions(relative_positions)
        adds_bias = relative_positions is not None and self.relative_positions.adds_bias
        require(
            not (flash_attention and adds_bias),
            "Flash attention does not support these `relative_positions`, which add to the scores; "
            "set `flash_attention` to None or False.",
            relative_positions=type(relative_positions).__name__,
            flash_attention=flash_attention,
        )

    @classmethod
    def from_keras(cls, layer: keras.layers.Layer) -> "MultiHeadAttention":
        """Copies an attention layer of Keras, with its weights where it has any.

        The copy has the name, the dtype policy and all arguments of the layer, and returns the
        same numbers, up to rounding. What differs where a query may attend to nothing is described
        with the class; an `activity_regularizer` applies to the output alone.

        Args:
            layer: A `keras.layers.MultiHeadAttention` or `keras.layers.GroupQueryAttention`. One
                that is not built gives a copy that is not built, which draws its own weights.

        Returns:
            The copy. Later changes of the layer do not reach it.

        Raises:
            UserError: It is another layer, or quantized.

        Examples:
            >>> x = keras.random.normal((2, 5, 16))
            >>> theirs = keras.layers.MultiHeadAttention(num_heads=2, key_dim=8)
            >>> expected = theirs(x, x, use_causal_mask=True)
            >>> ours = MultiHeadAttention.from_keras(theirs)
            >>> output = ours(x, x, use_causal_mask=True)
            >>> bool(keras.ops.max(keras.ops.abs(output - expected)) < 1e-5)
            True
        """
        copy = cls.from_config(keras_arguments(layer))
        if layer.built:
            copy.build(*keras_shapes(layer))
            copy_keras_weights(layer, copy)
        return copy

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

    def _require_inputs(self, inputs):
        # Over other axes than one it is folded inputs that have to fit.
        if AttendedAxes.of(self.attention_axes, len(inputs.query.shape)).is_plain:
            super()._require_inputs(inputs)

    def _head_sizes(self):
        sizes = super()._head_sizes() | {
            "key": (self.num_key_value_heads, self.key_dim),
            "value": (self.num_key_value_heads, self.value_dim),
        }
        return sizes | ({"gate": (self.num_heads, self.value_dim)} if self.use_gate else {})

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        axes = self._axes(inputs.query, use_causal_mask)
        folded = axes.fold_inputs(inputs)
        heads = self._positioned(self._project(*folded.visible(self.compute_dtype), training))
        pairs = self._windowed(folded.attention_mask, heads, use_causal_mask)
        result = self._attend_heads(
            heads,
            folded._replace(attention_mask=pairs).pair_masks(),
            return_attention_scores,
            training,
            is_causal=use_causal_mask,
            inputs=inputs,
        )
        return axes.unfold_result(result, inputs)

    def _axes(self, query, use_causal_mask) -> AttendedAxes:
        axes = AttendedAxes.of(self.attention_axes, len(query.shape))
        require(
            len(axes.axes) == 1
            or not (use_causal_mask or self.sliding_window or self.relative_positions),
            "A causal mask, a sliding window or relative positions need a single attended axis.",
            attention_axes=axes.axes,
            use_causal_mask=use_causal_mask,
            sliding_window=self.sliding_window,
            relative_positions=self.relative_positions,
        )
        return axes

    def _attend_heads(
        self,
        heads,
        mask,
        return_scores=False,
        training=False,
        is_causal=False,
        every_query_attends=False,
        **recorded,
    ):
        """Attends once; the output (batch, target, features), and scores where asked for."""
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
        result = attend(heads["value"], return_scores=return_scores, **self._dropping(training))
        record_attention(self, attend, heads["value"], mask, is_causal=is_causal, **recorded)
        context, scores = result if return_scores else (result, None)
        if self.use_gate:
            context = ops.multiply(context, ops.sigmoid(heads["gate"]))
        output = self._project_back(context, training)
        return (output, scores) if return_scores else output

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        widths = (self.key_dim, self.value_dim)
        heads = self.num_key_value_heads
        return initial_cache(batch_size, heads, widths, self.compute_dtype, max_length, beams)

    def attend_prompt(self, query, cache, real):
        heads = self._positioned(self._project_prompt(query, real))
        mask = masks.separate_masks(attention_mask=self._windowed(None, heads, True))
        output = self._attend_heads(heads, mask, is_causal=True)
        return output, continued(cache, heads["key"], heads["value"], real)

    def attend_step(self, query, cache, index, ancestor_mask=None):
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
            heads["bias"] = self._position_bias(query_heads, cache.key, position, at_slot)
        mask = visible_slots(cache, position, beams, ancestor_mask, self.sliding_window)
        heads |= {"key": cache.key, "value": cache.value}
        return self._attend_heads(heads, mask, every_query_attends=True), cache

    def project_source(self, value, key=None, value_mask=None) -> dict:
        require(
            self.relative_positions is None,
            "`relative_positions` are for self-attention, not for attention to another sequence.",
            relative_positions=self.relative_positions,
        )
        value, key, value_mask = self._visible_source(value, key, value_mask)
        return self._masked_source(self._project(None, value, key), value_mask, (1, 3))

    def attend_source(self, query, source: dict):
        heads = self._project(query, None, None) | source
        return self._attend_heads(heads, source.get("mask"), every_query_attends=True, crosses=True)

    def _positioned(self, heads) -> dict:
        """Heads with relative positions; the last query is at the last key."""
        if self.relative_positions is None:
            return heads
        query, key = heads["query"], heads["key"]
        queries, keys = ops.shape(query)[2], ops.shape(key)[2]
        at_key = ops.arange(keys, dtype="int32")
        at_query = ops.arange(queries, dtype="int32") + (keys - queries)
        bias = self._position_bias(query, key, at_query, at_key)
        query, key = self.relative_positions.transform(query, key, at_query, at_key)
        return heads | {"query": query, "key": key, "bias": bias}

    def _position_bias(self, query, key, at_query, at_key):
        """What relative positions add to the scaled scores, or `None`."""
        return self.relative_positions.bias(query, at_query, at_key)

    def _implementation(self) -> str:
        if self.flash_attention is None and keras.config.is_flash_attention_enabled() is False:
            return "dense"
        return {None: "auto", True: "flash", False: "dense"}[self.flash_attention]

    def _windowed(self, attention_mask, heads, use_causal_mask):
        if self.sliding_window is None:
            return attention_mask
        target, source = ops.shape(heads["query"])[2], ops.shape(heads["key"])[2]
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
        if self.flash_attention:
            self._refuse_scores(flash_attention=True)
        axes = AttendedAxes.of(self.attention_axes, len(query_shape))
        return axes.scores_shape(query_shape, value_shape, self.num_heads)


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

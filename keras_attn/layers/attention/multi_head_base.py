"""Base of the mechanisms with several heads: the projections to the heads and back."""

import dataclasses
import math
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import AttentionLayer
from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.head_projection import ROLES, HeadProjection
from keras_attn.layers.configuration import split_options
from keras_attn.layers.dense import Dense
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.layers.positions.relative_positions import RelativePositions
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.heads import merge_heads
from keras_attn.ops.linear import one_by_one
from keras_attn.ops.masks import masked_queries
from keras_attn.validation import require, require_positive

_OF_PROJECTIONS = (
    "use_bias",
    "bias_initializer",
    "kernel_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "bias_constraint",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProjectionOptions:
    """Options of the projections to the heads and back, which all mechanisms with heads take.

    Attributes:
        value_dim: Size of each head's value; `key_dim` by default.
        use_bias: Whether the projections have biases.
        output_shape: Size of the output's features, a number or a tuple; those of the query by
            default.
        kernel_initializer: Initializer of the kernels.
        bias_initializer: Initializer of the biases.
        kernel_regularizer: Regularizer of the kernels.
        bias_regularizer: Regularizer of the biases.
        activity_regularizer: Regularizer of the output.
        kernel_constraint: Constraint on the kernels.
        bias_constraint: Constraint on the biases.
        output_initializer: Initializer of the output projection's kernel, where it is not
            `kernel_initializer`.
    """

    value_dim: int | None = None
    use_bias: bool = True
    output_shape: int | tuple[int, ...] | None = None
    kernel_initializer: Any = "glorot_uniform"
    bias_initializer: Any = "zeros"
    kernel_regularizer: Any = None
    bias_regularizer: Any = None
    activity_regularizer: Any = None
    kernel_constraint: Any = None
    bias_constraint: Any = None
    output_initializer: Any = None


class BaseMultiHeadAttention(AttentionLayer):
    """Projects sequences to heads, and what the heads have attended to back to features.

    Args:
        num_heads: Number of query heads.
        key_dim: Size of each head's query and key.
        **kwargs: Fields of `ProjectionOptions`, and arguments of `keras.layers.Layer`.
    """

    sizes = ProjectionOptions

    def __init__(self, num_heads: int, key_dim: int, **kwargs):
        options, of_keras = split_options(ProjectionOptions, kwargs)
        super().__init__(activity_regularizer=options.activity_regularizer, **of_keras)
        value_dim = key_dim if options.value_dim is None else options.value_dim
        require_positive(num_heads=num_heads, key_dim=key_dim, value_dim=value_dim)
        output_shape = options.output_shape
        for size in output_shape if isinstance(output_shape, tuple | list) else [output_shape or 1]:
            require_positive(output_shape=size)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.use_bias = options.use_bias
        self._output_shape = output_shape
        self.kernel_initializer = keras.initializers.get(options.kernel_initializer)
        self.bias_initializer = keras.initializers.get(options.bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(options.kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(options.bias_regularizer)
        self.kernel_constraint = keras.constraints.get(options.kernel_constraint)
        self.bias_constraint = keras.constraints.get(options.bias_constraint)
        self.output_initializer = keras.initializers.get(options.output_initializer)
        self.relative_positions = None

    def _set_positions(self, layer: Any) -> None:
        """Makes the attention's own copy of the relative positions that it is given, or `None`."""
        if layer is None:
            return
        require(
            isinstance(layer, RelativePositions),
            "`relative_positions` must be a RotaryEmbedding, RelativePositionBias, AlibiBias, "
            "TransformerXLPositions or another layer of RelativePositions; positions that are "
            "added to inputs go before the attention.",
            relative_positions=type(layer).__name__,
        )
        require(
            layer.num_heads in (None, self.num_heads),
            "`relative_positions` must have as many heads as the attention.",
            relative_positions_num_heads=layer.num_heads,
            num_heads=self.num_heads,
        )
        layer.require_key_dim(self.key_dim)
        copy = copy_layer(layer, "relative_positions", dtype=self.dtype_policy)
        self.relative_positions = copy

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the weights.

        Roles that read the same sequence share a kernel, and so a matrix product.

        Args:
            query_shape: Shape of the query.
            value_shape: Shape of the value. Left out, the layer is built for self-attention:
                query, key and value come from one sequence through one kernel.
            key_shape: Shape of the key, where it is not the value.
        """
        self._require_shapes(query=query_shape, value=value_shape, key=key_shape)
        self.projections = self._built_projections((query_shape, value_shape, key_shape))
        shared = self._shared_options()
        initializer = self.output_initializer or self.kernel_initializer
        self.output_projection = Dense(
            math.prod(self._output_features(query_shape)),
            kernel_initializer=separate_initializer(initializer, len(ROLES)),
            name="output",
            **shared,
        )
        self.output_projection.build((None, None, self.num_heads * self.value_dim))
        if self.relative_positions is not None and not self.relative_positions.built:
            self.relative_positions.build(None)

    def _shared_options(self) -> dict[str, Any]:
        """Options of all projections."""
        shared = {name: getattr(self, name) for name in _OF_PROJECTIONS}
        return shared | {"dtype": self.dtype_policy}

    def _built_projections(
        self, shapes: tuple, first_seed: int = 0, prefix: str = ""
    ) -> list[HeadProjection]:
        """Makes the projections to the heads.

        Args:
            shapes: Those of query, value and key, as in `build`.
            first_seed: What seeds of initializers are moved by.
            prefix: Beginning of their names.

        Returns:
            One projection for the roles that read the same sequence.
        """
        query_shape, value_shape, key_shape = shapes
        if value_shape is None:
            groups = [(query_shape, ROLES)]
        elif key_shape is None:
            groups = [(query_shape, ("query", "gate")), (value_shape, ("key", "value"))]
        else:
            groups = [
                (query_shape, ("query", "gate")),
                (key_shape, ("key",)),
                (value_shape, ("value",)),
            ]
        sizes = self._head_sizes()
        initializer = self.kernel_initializer
        if first_seed:
            initializer = separate_initializer(initializer, first_seed)
        projections = []
        for shape, roles in groups:
            heads = {role: sizes[role] for role in roles if role in sizes}
            if heads:
                projection = HeadProjection(
                    heads,
                    kernel_initializer=initializer,
                    name=prefix + "_".join(heads),
                    **self._shared_options(),
                )
                projection.build(shape)
                projections.append(projection)
        return projections

    def _head_sizes(self) -> dict[str, tuple[int, int]]:
        """For each role that is projected the number of heads and their size."""
        return {
            "query": (self.num_heads, self.key_dim),
            "key": (self.num_heads, self.key_dim),
            "value": (self.num_heads, self.value_dim),
        }

    def _project(self, query, value, key, training=False, projections=None) -> dict:
        """Heads (batch, heads, length, size) by role, of those roles whose input is given."""
        inputs = {"query": query, "gate": query, "value": value, "key": value}
        if key is not None:
            inputs["key"] = key
        heads = {}
        for projection in self.projections if projections is None else projections:
            heads |= projection.heads_of(one_by_one(inputs, list(heads.values())), training)
        return heads

    def _project_prompt(self, query, real) -> dict:
        """Heads of a prompt (batch, length, features), without its padding."""
        query = without_hidden(query, real)
        return self._project(query, query, None)

    def _attend_by_keys(
        self, attend, value, key_mask, query_mask=None, training=False, dropping=None, **recorded
    ):
        """Attends with a mask that hides keys from all queries alike.

        Args:
            attend: Function of heads of values that gives contexts.
            value: The heads of the values.
            key_mask: The mask of `attend`, (batch or 1, heads or 1, source), or `None`.
            query_mask: Boolean (batch, target), or `None`.
            training: Whether the layer is trained.
            dropping: Further arguments of `attend`, with which its weights are not recorded.
            **recorded: Arguments of `record_attention`.

        Returns:
            The output (batch, target, features).
        """
        context = attend(value, **(dropping or {}))
        record_attention(self, attend, value, key_mask, query_mask=query_mask, **recorded)
        return self._project_back(masked_queries(context, query_mask), training)

    def _project_back(self, context, training=False):
        """(batch, heads, target, value_dim) to the output (batch, target, features)."""
        context = merge_heads(context)  # (batch, target, num_heads * value_dim)
        output = self.output_projection(context, training=training)
        if isinstance(self._output_shape, tuple | list):
            output = ops.reshape(output, (-1, ops.shape(output)[1], *self._output_shape))
        return output

    def _project_hypotheses(self, query) -> dict:
        """Heads of one new position, (batch, beams, features): a row for each hypothesis."""
        rows = ops.reshape(query, (-1, 1, query.shape[2]))
        return self._project(rows, rows, None)

    def _project_back_hypotheses(self, context, beams: int):
        """(batch * beams, heads, 1, value_dim) to the output (batch, beams, features)."""
        output = self._project_back(context)
        return ops.reshape(output, (-1, beams, *output.shape[2:]))

    def _output_features(self, query_shape) -> tuple[int, ...]:
        if not self._output_shape:
            return (query_shape[-1],)
        return (self._output_shape,) if isinstance(self._output_shape, int) else self._output_shape

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return (*query_shape[:-1], *self._output_features(query_shape))

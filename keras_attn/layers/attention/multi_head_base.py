"""What mechanisms with several heads share: the projections to the heads and back."""

import math
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_inputs import require_attention_inputs
from keras_attn.layers.attention.head_projection import ROLES, HeadProjection
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.dense import Dense
from keras_attn.layers.hidden_positions import visible_inputs
from keras_attn.layers.positions.relative_positions import refuse_relative_positions
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.heads import merge_heads
from keras_attn.validation import require, require_positive


class BaseMultiHeadAttention(CompositeLayer):
    """Projects sequences to heads, and what the heads have attended to back to features.

    Args:
        num_heads: Number of query heads.
        key_dim: Size of each head's query and key.
        value_dim: Size of each head's value; `key_dim` by default.
        use_bias: Whether the projections have biases.
        output_shape: Size of the output's features, a number or a tuple; those of the query by
            default.
        kernel_initializer: Initialiser of the kernels.
        bias_initializer: Initialiser of the biases.
        kernel_regularizer: Regulariser of the kernels.
        bias_regularizer: Regulariser of the biases.
        activity_regularizer: Regulariser of the output.
        kernel_constraint: Constraint on the kernels.
        bias_constraint: Constraint on the biases.
        output_initializer: Initialiser of the output projection's kernel, where it is not
            `kernel_initializer`.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    can_be_causal = True
    can_cross = True

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        use_bias: bool = True,
        output_shape: int | tuple[int, ...] | None = None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(
            activity_regularizer=activity_regularizer, **refuse_relative_positions(self, kwargs)
        )
        self.supports_masking = True
        value_dim = key_dim if value_dim is None else value_dim
        require_positive(num_heads=num_heads, key_dim=key_dim, value_dim=value_dim)
        for size in output_shape if isinstance(output_shape, tuple | list) else [output_shape or 1]:
            require_positive(output_shape=size)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.use_bias = use_bias
        self.output_features = output_shape
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.output_initializer = keras.initializers.get(output_initializer)

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the weights.

        Args:
            query_shape: Shape of the query.
            value_shape: Shape of the value. Left out, the layer is built for self-attention:
                query, key and value come from one sequence through one fused kernel.
            key_shape: Shape of the key, where it is not the value.
        """
        require_sequences(query=query_shape, value=value_shape, key=key_shape)
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
        self.projections = []
        for shape, roles in groups:
            heads = {role: sizes[role] for role in roles if role in sizes}
            if heads:
                projection = HeadProjection(
                    heads,
                    kernel_initializer=self.kernel_initializer,
                    name="_".join(heads),
                    **self._projection_arguments(),
                )
                projection.build(shape)
                self.projections.append(projection)
        initializer = self.output_initializer or self.kernel_initializer
        self.output_projection = Dense(
            math.prod(self._output_features(query_shape)),
            kernel_initializer=separate_initializer(initializer, len(ROLES)),
            name="output",
            **self._projection_arguments(),
        )
        self.output_projection.build((None, None, self.num_heads * self.value_dim))

    def _require_inputs(self, *inputs: Any) -> None:
        """Raises unless the tensors of a call, in the order of its arguments, fit together."""
        require_attention_inputs(*inputs, num_heads=self.num_heads, same_length=not self.can_cross)

    def _visible(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """Query, value and key of a call, see `visible_inputs`.

        Args:
            *inputs: The tensors of the call in the order of its arguments.
        """
        return visible_inputs(self.compute_dtype, *inputs)

    def _head_sizes(self) -> dict[str, tuple[int, int]]:
        """For each role that is projected the number of heads and their size."""
        return {
            "query": (self.num_heads, self.key_dim),
            "key": (self.num_heads, self.key_dim),
            "value": (self.num_heads, self.value_dim),
        }

    def _project(self, query, value, key, training=False) -> dict:
        """Heads (batch, heads, length, size) by role, of those roles whose input is given."""
        inputs = {"query": query, "gate": query, "value": value, "key": value}
        if key is not None:
            inputs["key"] = key
        heads = {}
        for projection in self.projections:
            # Roles with the same input share a matrix product; those without are left out.
            remaining = [role for role in projection.heads if inputs[role] is not None]
            while remaining:
                shared = inputs[remaining[0]]
                roles = tuple(role for role in remaining if inputs[role] is shared)
                heads |= dict(
                    zip(roles, projection(shared, roles=roles, training=training), strict=True)
                )
                remaining = [role for role in remaining if role not in roles]
        return heads

    def _project_back(self, context, training=False):
        """(batch, heads, target, value_dim) to the output (batch, target, features)."""
        context = merge_heads(context)  # (batch, target, num_heads * value_dim)
        output = self.output_projection(context, training=training)
        if isinstance(self.output_features, tuple | list):
            output = ops.reshape(output, (-1, ops.shape(output)[1], *self.output_features))
        return output

    def _project_hypotheses(self, query) -> dict:
        """Heads of one new position, (batch, beams, features): a row for each hypothesis."""
        rows = ops.reshape(query, (-1, 1, query.shape[2]))
        return self._project(rows, rows, None)

    def _project_back_hypotheses(self, context, beams: int):
        """(batch * beams, heads, 1, value_dim) to the output (batch, beams, features)."""
        output = self._project_back(context)
        return ops.reshape(output, (-1, beams, *output.shape[2:]))

    def _projection_arguments(self) -> dict:
        return {
            "use_bias": self.use_bias,
            "bias_initializer": self.bias_initializer,
            "kernel_regularizer": self.kernel_regularizer,
            "bias_regularizer": self.bias_regularizer,
            "kernel_constraint": self.kernel_constraint,
            "bias_constraint": self.bias_constraint,
            "dtype": self.dtype_policy,
        }

    def _output_features(self, query_shape) -> tuple[int, ...]:
        if not self.output_features:
            return (query_shape[-1],)
        if isinstance(self.output_features, int):
            return (self.output_features,)
        return tuple(self.output_features)

    def _scores_shape(self, query_shape, value_shape) -> tuple:
        """The shape of attention scores, where the mechanism has any."""
        require_no_scores(self, return_attention_scores=True)

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return (*query_shape[:-1], *self._output_features(query_shape))

    def compute_output_spec(
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
        self._require_inputs(query, value, key, query_mask, value_mask, key_mask, attention_mask)
        output = keras.KerasTensor(self.compute_output_shape(query.shape), self.compute_dtype)
        if not return_attention_scores:
            return output
        shape = self._scores_shape(query.shape, value.shape)
        return output, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "use_bias": self.use_bias,
            "output_shape": self.output_features,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
            "output_initializer": keras.initializers.serialize(self.output_initializer),
        }


def require_no_scores(layer: keras.layers.Layer, return_attention_scores: bool) -> None:
    """Refuses to return scores that a mechanism does not build.

    Raises:
        UserError: Scores are asked for.
    """
    require(
        not return_attention_scores,
        f"{type(layer).__name__} builds no matrix of scores, so it cannot return them.",
        return_attention_scores=return_attention_scores,
    )


def require_sequences(**shapes: tuple | None) -> None:
    """Refuses to be built for anything but sequences of vectors.

    Args:
        **shapes: Shapes of the inputs by name, or `None`.

    Raises:
        UserError: A shape has fewer axes than batch, length and features.
    """
    for name, shape in shapes.items():
        require(
            shape is None or len(shape) >= 3,
            f"`{name}` must be (batch, length, features).",
            **{f"{name}_shape": shape},
        )


def require_same_length(
    layer: keras.layers.Layer, query_shape: tuple, **shapes: tuple | None
) -> None:
    """Refuses to be built for sequences other than the query's, for self-attention alone.

    Args:
        layer: The attention layer.
        query_shape: Shape of the query.
        **shapes: Shapes of the other inputs by name, or `None`.

    Raises:
        UserError: A length is known and another one.
    """
    for name, shape in shapes.items():
        lengths = {query_shape[1], query_shape[1] if shape is None else shape[1]} - {None}
        require(
            len(lengths) < 2,
            f"{type(layer).__name__} needs a `{name}` as long as the `query`.",
            **{f"{name}_shape": shape, "query_shape": query_shape},
        )

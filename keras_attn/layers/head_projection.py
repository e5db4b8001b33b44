"""Projection of one sequence to the heads of several roles with a single matrix product."""

import math

import keras
from keras import ops

from keras_attn.layers.copies import separate_initializer
from keras_attn.ops.heads import split_heads
from keras_attn.ops.linear import linear

ROLES = ("query", "key", "value", "gate")


class HeadProjection(keras.layers.Layer):
    """Projects a sequence to attention heads, for one role or several at once.

    Query, key and value of self-attention come from the same sequence: one kernel that holds
    the three side by side costs one large matrix product instead of three smaller ones. Each
    role's columns are initialised on their own, so that their scale is that of a single kernel.

    Args:
        heads: For each role ("query", "key", "value", "gate") its number of heads and their
            size, in the order in which they stand in the kernel.
        use_bias: Whether to add a bias.
        kernel_initializer: Initialiser of each role's part of the kernel.
        bias_initializer: Initialiser of the bias.
        kernel_regularizer: Regulariser of the kernel.
        bias_regularizer: Regulariser of the bias.
        kernel_constraint: Constraint on the kernel.
        bias_constraint: Constraint on the bias.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        heads: dict[str, tuple[int, int]],
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.heads = dict(heads)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)

    def build(self, input_shape):
        self.input_spec = keras.layers.InputSpec(axes={-1: input_shape[-1]})
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], sum(self._sizes())),
            initializer=self._initialize_parts,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(sum(self._sizes()),),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def call(self, inputs, roles: tuple[str, ...] | None = None, training: bool = False):
        """Projects `inputs` (batch, length, features) to the heads of `roles` (default: all).

        Returns:
            A list with one tensor (batch, heads, length, head size) for each role.
        """
        roles = tuple(self.heads) if roles is None else roles
        kernel, bias = self._columns(roles)
        x = linear(inputs, kernel, bias, training=training)
        shapes = [self.heads[role] for role in roles]
        if len(set(shapes)) == 1:
            return split_heads(x, len(roles), shapes[0][0])
        # Roles of different sizes: grouped queries, a value size of its own.
        ends = list(_running_sums(math.prod(shape) for shape in shapes))[:-1]
        parts = zip(ops.split(x, ends, axis=-1), shapes, strict=True)
        return [split_heads(part, 1, num_heads)[0] for part, (num_heads, _) in parts]

    def compute_mask(self, inputs, previous_mask):
        # Heads have no length axis where Keras looks for one; the attention has the mask already.
        return None

    def _columns(self, roles):
        if roles == tuple(self.heads):
            return self.kernel, self.bias
        ends = list(_running_sums(self._sizes()))
        parts = zip(self.heads, self._sizes(), ends, strict=True)
        spans = {role: (end - size, end) for role, size, end in parts}
        kernels = [self.kernel[:, slice(*spans[role])] for role in roles]
        kernel = ops.concatenate(kernels, axis=-1) if len(roles) > 1 else kernels[0]
        if self.bias is None:
            return kernel, None
        biases = [self.bias[slice(*spans[role])] for role in roles]
        return kernel, ops.concatenate(biases, axis=-1) if len(roles) > 1 else biases[0]

    def _sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.heads.values()]

    def _initialize_parts(self, shape, dtype=None):
        parts = []
        for role, size in zip(self.heads, self._sizes(), strict=True):
            initializer = separate_initializer(self.kernel_initializer, ROLES.index(role))
            parts.append(initializer((shape[0], size), dtype=dtype))
        return ops.concatenate(parts, axis=-1)

    def compute_output_spec(self, inputs, roles=None, training=False):
        batch, length = inputs.shape[:2]
        shapes = [self.heads[role] for role in roles or self.heads]
        return [
            keras.KerasTensor((batch, num_heads, length, size), self.compute_dtype)
            for num_heads, size in shapes
        ]


def _running_sums(sizes):
    total = 0
    for size in sizes:
        total += size
        yield total

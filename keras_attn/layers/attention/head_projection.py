"""Projection of one sequence to the heads of several roles with a single matrix product."""

import itertools
import math
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_attn.layers.dense import Dense
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.heads import split_heads
from keras_attn.ops.linear import linear
from keras_attn.validation import require, require_one_of, require_positive

ROLES = ("query", "key", "value", "gate")


class HeadProjection(Dense):
    """Projects a sequence to attention heads, for one role or several at once.

    Query, key and value of self-attention come from the same sequence: one kernel that holds
    the three side by side costs one large matrix product instead of three smaller ones. Each
    role's columns are initialized on their own, so that their scale is that of a single kernel.

    Args:
        heads: For each role ("query", "key", "value", "gate") its number of heads and their
            size, in their order in the kernel.
        kernel_initializer: Initializer of each role's part of the kernel.
        **kwargs: Arguments of `keras.layers.Dense`, without its activation.
    """

    def __init__(
        self, heads: dict[str, tuple[int, int]], kernel_initializer="glorot_uniform", **kwargs
    ):
        super().__init__(int(sum(map(math.prod, heads.values()))), **kwargs)
        self.heads = dict(heads)
        self.adapters = {}
        self._initializer = keras.initializers.get(kernel_initializer)
        self.kernel_initializer = self._initialize_parts

    def call(self, inputs, roles: tuple[str, ...] | None = None, training: bool = False):
        """Projects `inputs` (batch, length, features) to the heads of `roles` (default: all).

        Returns:
            A list with one tensor (batch, heads, length, head size) for each role.
        """
        roles = tuple(self.heads) if roles is None else roles
        kernel, bias = self._columns(roles)
        return self._split(linear(inputs, kernel, bias, training=training), roles)

    def heads_of(self, inputs: dict, training: bool = False) -> dict:
        """Projects the inputs of several roles, each tensor once.

        Args:
            inputs: Tensor (batch, length, features) by role; roles with `None` are left out.
            training: Whether a gradient is asked for.

        Returns:
            Heads (batch, heads, length, head size) by role.
        """
        sharing = {}
        for role in self.heads:
            if inputs[role] is not None:
                sharing.setdefault(id(inputs[role]), []).append(role)
        heads = {}
        for roles in sharing.values():
            projected = self(inputs[roles[0]], roles=tuple(roles), training=training)
            heads |= dict(zip(roles, projected, strict=True))
        return heads

    def quantized_call(self, inputs, roles=None, training=False):
        if self._awaits_calibration():
            return self.call(inputs, roles, training)
        if self._has_constant_integers():
            roles = tuple(roles or self.heads)
            spans = self._spans(roles)
            units = np.concatenate([np.arange(span.start, span.stop) for span in spans])
            return self._split(self._integer_product(inputs, units), roles)
        # A quantized kernel is one piece: all roles are projected, and those asked for returned.
        x = super().quantized_call(inputs, training=training)
        parts = dict(zip(self.heads, self._split(x, tuple(self.heads)), strict=True))
        return [parts[role] for role in roles or self.heads]

    def _split(self, x, roles):
        shapes = [self.heads[role] for role in roles]
        if len(set(shapes)) == 1:
            return split_heads(x, len(roles), shapes[0][0])
        # Roles of different sizes: grouped queries, a value size of its own.
        ends = list(itertools.accumulate(map(math.prod, shapes)))[:-1]
        parts = zip(ops.split(x, ends, axis=-1), shapes, strict=True)
        return [split_heads(part, 1, num_heads)[0] for part, (num_heads, _) in parts]

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer="he_uniform",
        b_initializer="zeros",
        roles: tuple[str, ...] | None = None,
    ):
        """Freezes the kernel and adds a trainable product of two small matrices for each role.

        Args:
            rank: Number of columns of A and of rows of B, for each role.
            lora_alpha: The products are multiplied by `lora_alpha / rank`; `rank` by default.
            a_initializer: Initializer of A (features, rank).
            b_initializer: Initializer of B (rank, heads * head size).
            roles: The roles that get A and B, each its own: all by default.

        Raises:
            UserError: The layer is not built, has LoRA already, has a constraint on its kernel, is
                quantized by GPTQ or AWQ, `rank` is not positive, or it projects to no such role.

        Reference:
            Hu et al., 2021, https://arxiv.org/abs/2106.09685, sections 4.1 and 4.2.
        """
        roles = tuple(self.heads) if roles is None else tuple(roles)
        self.require_adaptable(rank, roles)
        self._tracker.unlock()
        for number, role in enumerate(roles):
            shapes = {
                "a": ((self.input_spec.axes[-1], rank), a_initializer),
                "b": ((rank, math.prod(self.heads[role])), b_initializer),
            }
            self.adapters[role] = tuple(
                self.add_weight(
                    name=f"{role}_lora_{name}",
                    shape=shape,
                    initializer=separate_initializer(keras.initializers.get(initializer), number),
                    dtype="float32",
                    regularizer=self.kernel_regularizer,
                )
                for name, (shape, initializer) in shapes.items()
            )
        self._kernel.trainable = False
        self._tracker.lock()
        self.lora_enabled = True
        self.lora_rank = rank
        self.lora_alpha = rank if lora_alpha is None else lora_alpha

    def require_adaptable(self, rank: int, roles: tuple[str, ...]) -> None:
        """Raises the UserError with which `enable_lora` would refuse these arguments."""
        require_positive(rank=rank)
        for role in roles:
            require_one_of("role", role, self.heads)
        require(self.built, "LoRA needs a layer that is built.", layer=self.name)
        require(not self.lora_enabled, "A layer has LoRA only once.", layer=self.name)
        require(
            self.kernel_constraint is None,
            "LoRA needs a kernel without a constraint.",
            kernel_constraint=self.kernel_constraint,
        )
        require(
            self.quantization_mode not in ("gptq", "awq"),
            "LoRA works with the quantization modes int8 and int4.",
            quantization_mode=self.quantization_mode,
        )

    @property
    def lora_kernel_a(self):
        """A of all adapted roles side by side, (features, roles * rank)."""
        return ops.concatenate([first for first, _ in self.adapters.values()], axis=-1)

    @property
    def lora_kernel_b(self):
        """B of each adapted role in its own rows and columns, (roles * rank, units)."""
        sizes = zip(self.heads, self._sizes(), strict=True)
        columns = [
            ops.pad(self.adapters[role][1], self._above_and_below(role))
            if role in self.adapters
            else ops.zeros((len(self.adapters) * self.lora_rank, size), "float32")
            for role, size in sizes
        ]
        return ops.concatenate(columns, axis=-1)

    def _above_and_below(self, role):
        above = list(self.adapters).index(role)
        below = len(self.adapters) - 1 - above
        return ((above * self.lora_rank, below * self.lora_rank), (0, 0))

    def _adapters(self):
        return list(self.adapters.values())

    def compute_mask(self, inputs, previous_mask):
        # Heads have no length axis where Keras looks for one; the attention has the mask already.
        return None

    def _columns(self, roles):
        """The columns of the kernel and of the bias that belong to roles."""
        if roles == tuple(self.heads):
            return self.kernel, self.bias
        spans = self._spans(roles)

        def chosen(weight):
            parts = [weight[..., span] for span in spans]
            return ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]

        return chosen(self.kernel), None if self.bias is None else chosen(self.bias)

    def _spans(self, roles) -> list[slice]:
        """The columns of each role."""
        ends = dict(zip(self.heads, itertools.accumulate(self._sizes()), strict=True))
        return [slice(ends[role] - math.prod(self.heads[role]), ends[role]) for role in roles]

    def _sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.heads.values()]

    def _initialize_parts(self, shape, dtype=None):
        parts = []
        for role, size in zip(self.heads, self._sizes(), strict=True):
            initializer = separate_initializer(self._initializer, ROLES.index(role))
            parts.append(initializer((shape[0], size), dtype=dtype))
        return ops.concatenate(parts, axis=-1)

    def compute_output_spec(self, inputs, roles=None, training=False):
        batch, length = inputs.shape[:2]
        shapes = [self.heads[role] for role in roles or self.heads]
        return [
            keras.KerasTensor((batch, num_heads, length, size), self.compute_dtype)
            for num_heads, size in shapes
        ]


def enable_lora(
    layer: keras.layers.Layer,
    rank: int,
    lora_alpha: float | None = None,
    roles: Sequence[str] = ("query", "value"),
) -> list[HeadProjection]:
    """Adapts the projections to the heads of all attention in a layer or model, and nothing else.

    Query, key and value of self-attention share one kernel; here each role has an A and a B of its
    own. All other weights are frozen: to train the head of a classifier too, pass its encoder.
    Compile a model afterwards. Dense layers and embeddings have their own `enable_lora`, as those
    of Keras.

    Args:
        layer: A model, block or attention layer, built; quantized by int8 or int4, or not.
        rank: Number of columns of each A and of rows of each B.
        lora_alpha: The products of A and B are multiplied by `lora_alpha / rank`; `rank` by
            default.
        roles: The roles to adapt, among "query", "key", "value" and "gate".

    Returns:
        The projections that were adapted.

    Raises:
        UserError: No role is given, nothing in the layer projects to one of the roles, as in a
            layer that is not built, or it has LoRA already.

    Examples:
        >>> model = Bert(11, num_layers=2, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> projections = enable_lora(model, rank=4, roles=("query", "value"))
        >>> [variable.path for variable in model.trainable_variables][:2]
        ['block_0/attention/query_key_value/query_lora_a',
         'block_0/attention/query_key_value/query_lora_b']

    Reference:
        Hu et al., 2021, https://arxiv.org/abs/2106.09685.
    """
    roles = (roles,) if isinstance(roles, str) else tuple(roles)
    require(
        bool(roles), "`roles` must name at least one of query, key, value and gate.", roles=roles
    )
    projections = {
        part: [role for role in roles if role in part.heads]
        for part in layer._flatten_layers()
        if isinstance(part, HeadProjection) and set(roles) & set(part.heads)
    }
    projected = {role for part in projections for role in part.heads}
    require(
        set(roles) <= projected,
        "`layer` must hold attention that is built and projects to each of the `roles`.",
        layer=type(layer).__name__,
        roles=roles,
        projected=sorted(projected),
    )
    for part, adapted in projections.items():  # all before any is changed
        part.require_adaptable(rank, adapted)
    frozen = layer.trainable_variables
    for part, adapted in projections.items():
        part.enable_lora(rank, lora_alpha, roles=adapted)
    for variable in frozen:
        variable.trainable = False
    return list(projections)

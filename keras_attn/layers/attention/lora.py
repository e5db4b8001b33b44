"""Low-rank adaptation of attention."""

from collections.abc import Sequence

import keras

from keras_attn.layers.attention.head_projection import HeadProjection
from keras_attn.validation import require


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

    Example:
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

"""Base class of layers, also of those made of other layers."""

import keras

from keras_attn.layers.configuration import ConfiguredLayer
from keras_attn.layers.recomputation import Rematerialized


class CompositeLayer(ConfiguredLayer, Rematerialized, keras.layers.Layer):
    """A layer that propagates masks; its configuration lists the quantized layers inside of it."""

    supports_masking = True

    def get_config(self):
        return super().get_config() | {"dtype": serialize_policies(self)}


def serialize_policies(layer: keras.layers.Layer) -> dict:
    """Describes the dtype policy of a layer, and those of the quantized layers inside of it.

    Args:
        layer: A layer or a model, which hands its policy on to the layers that it makes.

    Returns:
        What `keras.dtype_policies.deserialize` takes.
    """
    policy = layer.dtype_policy
    quantized = {
        part.path: _policy(part)
        for part in layer._flatten_layers(include_self=False)
        if part.quantization_mode is not None and part.path
    }
    if quantized:
        is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)
        default = policy.default_policy if is_map else policy
        given = dict(policy) if is_map else {}
        policy = keras.dtype_policies.DTypePolicyMap(default, given | quantized)
    return keras.dtype_policies.serialize(policy)


def with_default_policy(description: dict | str | None, dtype: str) -> keras.DTypePolicy:
    """Describes another dtype policy in which the same layers are quantized.

    Args:
        description: What `serialize_policies` returned.
        dtype: Name of the policy of what is not quantized.

    Returns:
        The policy.
    """
    policy = keras.dtype_policies.get(description)
    if not isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return keras.dtype_policies.get(dtype)
    modes = {path: part.name.partition("_from_")[0] for path, part in policy.items()}
    quantized = {path: f"{mode}_from_{dtype}" for path, mode in modes.items()}
    policies = keras.dtype_policies.DTypePolicyMap(keras.dtype_policies.get(dtype))
    policies.update(quantized)
    return policies


def computing_policy(policy: keras.DTypePolicy) -> keras.DTypePolicy:
    """The dtype policy of what is not quantized by a policy.

    Args:
        policy: A dtype policy, such as `"int8_from_mixed_bfloat16"`, or a map of them.

    Returns:
        The policy itself where it quantizes nothing; otherwise the one after `_from_`.
    """
    if policy.quantization_mode is None:
        return policy
    is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)
    name = policy.default_policy.name if is_map else policy.name
    return keras.dtype_policies.get(name.partition("_from_")[2])


def _policy(layer):
    policy = layer.dtype_policy
    return policy[layer.path] if isinstance(policy, keras.dtype_policies.DTypePolicyMap) else policy

"""Layers made of other layers."""

import keras


class CompositeLayer(keras.layers.Layer):
    """A layer whose configuration says which of the layers inside of it are quantized."""

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
        if part.quantization_mode is not None
    }
    if quantized:
        is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)
        default = policy.default_policy if is_map else policy
        given = dict(policy) if is_map else {}
        policy = keras.dtype_policies.DTypePolicyMap(default, given | quantized)
    return keras.dtype_policies.serialize(policy)


def _policy(layer):
    policy = layer.dtype_policy
    return policy[layer.path] if isinstance(policy, keras.dtype_policies.DTypePolicyMap) else policy

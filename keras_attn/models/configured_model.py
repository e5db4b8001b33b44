"""Functional models whose configuration is what their constructors were given."""

from typing import Any, ClassVar

import keras
from keras import ops

from keras_attn.layers.composite_layer import computing_policy, serialize_policies
from keras_attn.layers.configuration import Configured, split_options
from keras_attn.tensors import Tensor
from keras_attn.validation import require


class ConfiguredModel(Configured, keras.Model):
    """A functional model that is saved as its constructor's arguments.

    Its inputs are known by their names: Keras takes the values of a dict in the order of their keys
    and drops those that are too many, so that one input can take another's place.

    Args:
        inputs: Keras inputs by name.
        outputs: What the model returns for them.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.
    """

    optional_inputs: ClassVar[tuple[str, ...]] = ()
    """Names of the inputs that `_completed` adds where they are missing or `None`."""

    fixed_arguments = ("inputs", "outputs")

    def __init__(
        self,
        inputs: dict,
        outputs: Any,
        *,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        super().__init__(inputs, outputs, name=name, trainable=trainable)
        # By which `compile` knows whether to scale the loss; Keras would quantize by it again.
        self.dtype_policy = computing_policy(keras.dtype_policies.get(dtype))

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(self._completed(self._by_name(inputs)), *args, **kwargs)

    def call(self, inputs, training=None, mask=None, **kwargs):
        # Which `stateless_call` calls by itself.
        inputs = self._completed(self._by_name(inputs))
        return super().call(inputs, training=training, mask=mask, **kwargs)

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        """The inputs that are given, a lone one also without its name."""
        names = list(self.input)
        required = [name for name in names if name not in self.optional_inputs]
        if len(required) == 1 and not isinstance(inputs, dict | list | tuple):
            inputs = {required[0]: inputs}
        named = isinstance(inputs, dict)
        given = [name for name, value in inputs.items() if value is not None] if named else None
        require(
            named and set(required) <= set(given) <= set(names),
            f"`{self.name}` must be called with a dict of {_listed(required, names)}.",
            inputs=sorted(inputs, key=str) if named else type(inputs).__name__,
        )
        return {name: inputs[name] for name in given}

    def _completed(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """All inputs, of those that are given."""
        return inputs

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": serialize_policies(self),
        } | self.given_config()


def read_options(kind: type, options: dict[str, Any]) -> tuple[Any, keras.DTypePolicy, dict]:
    """Reads a constructor's keyword arguments.

    Args:
        kind: Dataclass of the model's sizes.
        options: Its fields, and arguments of `ConfiguredModel`.

    Returns:
        The sizes, the dtype policy, and the arguments of `ConfiguredModel` with that policy.
    """
    sizes, others = split_options(kind, options)
    dtype = keras.dtype_policies.get(others.get("dtype"))
    return sizes, dtype, others | {"dtype": dtype}


def id_inputs(*names: str) -> dict[str, keras.KerasTensor]:
    """Makes inputs of token ids, or of other numbers of tokens, int32 (batch, length)."""
    return {name: keras.Input((None,), dtype="int32", name=name) for name in names}


def id_tensor(ids: Tensor) -> Any:
    """Ids as int32, because Keras takes no tensor beside an array."""
    return ids if isinstance(ids, keras.KerasTensor) else ops.convert_to_tensor(ids, "int32")


def _listed(required, names):
    optional = ", ".join(repr(name) for name in names if name not in required)
    listed = ", ".join(map(repr, required))
    return f"{listed} (and {optional} if there are any)" if optional else listed

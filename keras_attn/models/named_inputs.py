"""Models that are called with a dict."""

from typing import Any, ClassVar

import keras

from keras_attn.validation import require


class NamedInputs(keras.Model):
    """A functional model whose inputs are known by their names.

    Keras takes the values of a dict in the order of their keys and drops those that are too many,
    so that one input can take another's place.
    """

    optional_inputs: ClassVar[tuple[str, ...]] = ()
    """Names of the inputs that `_completed` adds where they are missing or `None`."""

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


def _listed(required, names):
    optional = ", ".join(repr(name) for name in names if name not in required)
    listed = ", ".join(map(repr, required))
    return f"{listed} (and {optional} if there are any)" if optional else listed

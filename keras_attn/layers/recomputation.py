"""Recomputation of layers in the backward pass, to save memory."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.pure_call import PureCall, mask_of
from keras_attn.ops.autodiff import custom_gradient, is_float, vector_jacobian_product
from keras_attn.validation import require


def recomputed(layer: keras.layers.Layer, function: Callable, *tensors: Any) -> Any:
    """Calls a part of a layer such that gradients keep its inputs alone.

    The backward pass calls `function` again. `keras.remat` alone would then drop other elements
    than the forward pass did, on TensorFlow, and lose the masks that Keras propagates; here both
    calls begin with the same states of the random generators and see the same masks.

    Args:
        layer: Whose variables the call uses, those of its random generators among them.
        function: Takes the tensors and returns one tensor. Integers and masks that it uses besides
            must be bound to it.
        *tensors: Float tensors to be differentiated by.

    Returns:
        What `function(*tensors)` returns.

    Reference:
        Chen et al., 2016, https://arxiv.org/abs/1604.06174.
    """
    pure = PureCall(layer, function, *(mask_of(tensor) for tensor in tensors))
    weights, states, changed = pure.weights(), pure.states(), []

    def call(*arguments: Any) -> tuple[Any, list]:
        output, after = pure(arguments[: len(tensors)], arguments[len(tensors) :], states)
        # Nothing may be assigned where nothing was drawn, as in a compiled call without dropout.
        changed[:] = [i for i, state in enumerate(states) if after[i] is not state]
        return output, [after[i] for i in changed]

    # Weights go in as tensors: on JAX a scope of our own hides their tracers.
    remat = _remat_on_torch if keras.backend.backend() == "torch" else keras.remat
    output, after = remat(call)(*tensors, *weights)
    pure.assign(after, changed)
    return output


def _remat_on_torch(call: Callable) -> Callable:
    """`keras.remat` there keeps what our own gradients need, and calls again without `training`."""

    def run(*arguments: Any) -> Any:
        form = None

        def with_gradient(*arguments: Any) -> tuple[tuple, Callable]:
            nonlocal form
            form = call(*arguments)

            def again(*given: Any) -> list:
                return keras.tree.flatten(call(*given))

            def gradient(*upstream: Any) -> tuple:
                return tuple(vector_jacobian_product(again, *arguments)[1](upstream))

            return tuple(keras.tree.flatten(form)), gradient

        outputs = custom_gradient(with_gradient)(*arguments)
        return keras.tree.pack_sequence_as(form, list(outputs))

    return run


class Rematerialized:
    """Lets a layer be made within `keras.RematScope`, whatever the arguments of its call are.

    `keras.remat` takes all arguments for tensors, so flags and names fail on JAX, as any argument
    given by its name does in a graph of TensorFlow. Here they are bound; layers inside of a layer
    that is computed again are not computed again once more.

    It also lets a layer have a quantized dtype policy, such as `"int8_from_float32"`, that has
    nothing to quantize but in the layers inside of it.

    A subclass names this class before that of Keras.
    """

    def get_config(self):
        # Without one of ours Keras would describe the constructor's arguments itself, and fail.
        return super().get_config()

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer in its quantized form, if it has one."""
        form = f"_{self.quantization_mode}_call"
        if getattr(type(self), form, None) is getattr(keras.layers.Layer, form, None):
            return self.call(*args, **kwargs)
        return super().quantized_call(*args, **kwargs)

    def rematerialized_call(self, layer_call: Callable, *args: Any, **kwargs: Any) -> Callable:
        """Chooses what Keras calls: `layer_call`, or what computes it again."""
        chosen = super().rematerialized_call(layer_call, *args, **kwargs)
        if chosen is layer_call or self._remat_mode.mode == "activations":
            return chosen
        return partial(self._call_again, layer_call)

    def _call_again(self, layer_call: Callable, *args: Any, **kwargs: Any) -> Any:
        kwargs = kwargs | self._known_training(kwargs.get("training"))
        if _IS_RECOMPUTED.get():
            return layer_call(*args, **kwargs)
        leaves = keras.tree.flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if ops.is_tensor(leaf) and is_float(leaf)]

        def function(*tensors: Any) -> Any:
            filled = dict(enumerate(leaves)) | dict(zip(places, tensors, strict=True))
            args_again, kwargs_again = keras.tree.pack_sequence_as(
                (args, kwargs), list(filled.values())
            )
            token = _IS_RECOMPUTED.set(True)
            try:
                return layer_call(*args_again, **kwargs_again)
            finally:
                _IS_RECOMPUTED.reset(token)

        return recomputed(self, function, *(leaves[place] for place in places))

    def _known_training(self, training: Any) -> dict:
        """Within the scope a functional model on JAX passes `training` on as a tensor."""
        if not ops.is_tensor(training):
            return {}
        draws = [v.path for v in self.variables if v.path.endswith("seed_generator_state")]
        require(
            not draws,
            "`training` must be True or False. Make layers with dropout within keras.RematScope, "
            "and the functional model of them outside.",
            training=training,
        )
        return {"training": False}


_IS_RECOMPUTED: ContextVar[bool] = ContextVar("keras_attn_is_recomputed", default=False)

"""Functions of a replica as graphs that run on all replicas."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_attn.training.workers.strategy import compiles_whole_updates


class ReplicaFunctions:
    """Runs functions on every replica of a strategy, each in a graph that is made once.

    Args:
        strategy: The strategy.
        static_shapes: Whether there is a graph for each shape of the arguments, in which all sizes
            are known and which XLA compiles as a whole, instead of one for all shapes.
    """

    def __init__(self, strategy: tf.distribute.Strategy, static_shapes: bool = False) -> None:
        self._strategy = strategy
        self._static_shapes = static_shapes
        # A TPU's strategy compiles by itself.
        self._jit = True if static_shapes and not compiles_whole_updates(strategy) else None
        self._graphs = {}

    def __call__(self, replica_function: Callable, *arguments: Any) -> tf.Tensor:
        """Calls the function with each replica's part.

        Args:
            replica_function: Returns a tensor that is equal on all replicas; known by its name.
            *arguments: Arguments from the strategy's iterator.

        Returns:
            The first replica's tensor.
        """
        key = replica_function.__name__
        if self._static_shapes:
            key = (key, *tf.nest.flatten(_specs(arguments, relaxed=False)))
        if key not in self._graphs:
            self._graphs[key] = self._graph(replica_function, arguments)
        return self._graphs[key](*arguments)

    def _graph(self, replica_function: Callable, arguments: tuple) -> Callable:
        def run(*arguments: Any) -> tf.Tensor:
            result = self._strategy.run(replica_function, args=arguments)
            return self._strategy.experimental_local_results(result)[0]

        if self._static_shapes:
            # TensorFlow warns of functions that are traced so often, but not of these.
            specs = _specs(arguments, relaxed=False)
            return tf.function(run, jit_compile=self._jit).get_concrete_function(*specs)
        return tf.function(run, input_signature=_specs(arguments, relaxed=True))


def _specs(arguments: tuple, relaxed: bool) -> list:
    """The types of the arguments, their sizes unknown if `relaxed`."""

    def spec(value: Any) -> Any:
        if isinstance(value, tf.distribute.DistributedValues):
            parts = [spec(part) for part in value.values]
            return type(value._type_spec)(*parts)
        shape = [None] * value.shape.rank if relaxed else value.shape
        return tf.TensorSpec(shape, value.dtype)

    return list(tf.nest.map_structure(spec, arguments))

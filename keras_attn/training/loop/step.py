"""One update of the weights, or one evaluation of a batch, on every replica."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from keras_attn.ops.adding import adds_in_place
from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.renamed import renamed_arguments
from keras_attn.tensors import Tensor
from keras_attn.training.loop.teaching import Teaching
from keras_attn.training.state import SUMS
from keras_attn.training.workers.consistency import divergence, twice
from keras_attn.training.workers.strategy import compiles_whole_updates, replica_random_streams

# What an update returns.
UPDATE_VALUES = (*SUMS, "gradient_norm")


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
            function = tf.function(run, jit_compile=self._jit, autograph=False)
            return function.get_concrete_function(*specs)
        specs = _specs(arguments, relaxed=True)
        return tf.function(run, input_signature=specs, autograph=False)


class TrainingStep:
    """Gradients of micro-batches, summed over tokens and replicas, and one update from them.

    The loss of an update is the sum over all its target tokens, on all replicas and in all
    micro-batches, divided by their number: however the rows are divided, the result is that of
    one large batch.

    Args:
        model: Called as `model(inputs, training=True)`, gives logits (rows, length, vocabulary).
        optimizer: From `make_optimizer`.
        strategy: The strategy that the model was built under.
        loss: `loss(labels, outputs, label_smoothing)` -> the four sums of `token_cross_entropy`.
        label_smoothing: Passed on to `loss`.
        batch_tokens: About the number of tokens in a batch: keeps loss scaling in a usable range.
        jit: Whether XLA compiles the gradient.
        cpu_shards: Number of shards of a batch, which the graph computes in parallel: each core
            computes a shard of its own, instead of a part of every op.
        whole_updates: Whether XLA compiles the whole update instead, one program for each shape of
            batches, as TPUs need it.
        accumulate: Whether updates may have more than one micro-batch.
        clip_norm: Largest norm of the whole gradient; 0 for no clipping.
        consistency: Weight alpha of R-Drop: the loss is the mean of those under two dropout masks
            plus alpha/4 · (KL(p‖q) + KL(q‖p)), which is half of the paper's equation 4.
        teaching: Soft targets of teachers, which the loss is mixed with.

    Examples:
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> optimizer = make_optimizer(TrainingSettings(), 0.01, model.trainable_variables, False)
        >>> step = TrainingStep(model, optimizer, make_strategy("one"))
        >>> examples = TextExamples.from_texts(["cab"], CharacterTokenizer("abc"))
        >>> [batch] = batch_dataset(examples, plan_epoch(examples, batch_tokens=8, seed=1))
        >>> losses = [float(step([batch])[0]) for update in range(9)]
        >>> losses[-1] < losses[0]
        True
    """

    @renamed_arguments(parts="cpu_shards")
    def __init__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        strategy: tf.distribute.Strategy,
        loss: Callable = token_cross_entropy,
        label_smoothing: float = 0.0,
        batch_tokens: int = 1,
        jit: bool = False,
        accumulate: bool = False,
        clip_norm: float = 0.0,
        consistency: float = 0.0,
        cpu_shards: int = 1,
        whole_updates: bool = False,
        teaching: Teaching | None = None,
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._strategy = strategy
        self._loss = loss
        self._label_smoothing = label_smoothing
        self._clip_norm = clip_norm
        self._consistency = consistency
        self._teaching = teaching
        self._cpu_shards = cpu_shards
        # A power of two: dividing by it and multiplying again changes no bit.
        self._divisor = 2.0 ** round(math.log2(batch_tokens))
        self._gradients = self._sums_and_gradients
        if jit:
            self._gradients = tf.function(self._sums_and_gradients, jit_compile=True)
        elif not whole_updates:
            self._gradients = adds_in_place()(self._sums_and_gradients)
        self._accumulators = _make_accumulators(model, strategy) if accumulate else None
        # Then one replica's micro-batch is the whole update, and its number of tokens known.
        self._is_whole = not accumulate and strategy.num_replicas_in_sync == 1
        self._compiled = ReplicaFunctions(strategy, static_shapes=whole_updates)

    def __call__(self, batches: list) -> tf.Tensor:
        """Makes one update.

        Args:
            batches: Micro-batches `(inputs, labels)`, as the strategy's iterator gives them; one,
                unless made with `accumulate`.

        Returns:
            What `UPDATE_VALUES` names, a tensor (5,): the sums before the update, and the norm of
            the whole gradient before clipping.
        """
        if self._accumulators is None:
            (batch,) = batches
            return self._compiled(self._update_replica, batch)
        for batch in batches:
            self._compiled(self._accumulate_replica, batch)
        return self._compiled(self._finish_replica)

    def _sums_and_gradients(self, inputs: Any, labels: Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Sums (4,) of one replica's part, and the gradients of its loss, divided and scaled.

        Divided by the number of tokens where that is the whole update's, otherwise by a constant
        that `_apply` makes up for.
        """
        variables = self._model.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([variable.value for variable in variables])
            with replica_random_streams(self._model):
                sums = [self._sums(*part) for part in _cut((inputs, labels), self._cpu_shards)]
            loss, nll, count, correct = map(tf.add_n, zip(*sums, strict=True))
            divisor = tf.maximum(count, 1) if self._is_whole else self._divisor
            target = self._optimizer.scale_loss(loss / divisor)
        gradients = tape.gradient(target, [variable.value for variable in variables])
        dense = [
            tf.zeros_like(variable.value) if gradient is None else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(gradients, variables, strict=True)
        ]
        return tf.stack([loss, nll, count, correct]), dense

    def _sums(self, inputs: Any, labels: Tensor) -> tuple[tf.Tensor, ...]:
        """The four sums of some rows."""
        targets = self._teaching.targets(inputs, labels) if self._teaching else ()
        if self._consistency:
            inputs, labels, targets = twice((inputs, labels, targets))
        outputs = self._model(inputs, training=True)
        loss, nll, count, correct = self._loss(labels, outputs, self._label_smoothing)
        if self._teaching:
            loss = self._teaching.mixed(loss, labels, outputs, targets)
        if self._consistency:
            loss, nll, count, correct = loss / 2, nll / 2, count / 2, correct / 2
            loss += self._consistency / 4 * divergence(labels, outputs)
        for penalty in self._model.losses:
            loss += tf.cast(penalty, loss.dtype) * count
        return loss, nll, count, correct

    def _update_replica(self, batch: Any) -> tf.Tensor:
        return self._apply(*self._gradients(*batch))

    def _accumulate_replica(self, batch: Any) -> tf.Tensor:
        sums, gradients = self._gradients(*batch)
        for accumulator, value in zip(self._accumulators, [sums, *gradients], strict=True):
            accumulator.assign_add(tf.cast(value, accumulator.dtype))
        return sums

    def _finish_replica(self) -> tf.Tensor:
        sums, *gradients = [accumulator.read_value() for accumulator in self._accumulators]
        with tf.control_dependencies([sums, *gradients]):
            for accumulator in self._accumulators:
                accumulator.assign(tf.zeros_like(accumulator))
        return self._apply(sums, gradients)

    def _apply(self, sums: tf.Tensor, gradients: list[tf.Tensor]) -> tf.Tensor:
        """Updates, after a sum over replicas and a division by the tokens where need be."""
        if not self._is_whole:
            context = tf.distribute.get_replica_context()
            sums, *gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, [sums, *gradients])
            factor = self._divisor / tf.maximum(sums[SUMS.index("tokens")], 1)
            gradients = [gradient * tf.cast(factor, gradient.dtype) for gradient in gradients]
        gradients, norm = self._clipped(gradients)
        self._optimizer.apply(gradients, self._model.trainable_variables)
        return tf.concat([sums, [tf.cast(norm, sums.dtype)]], axis=0)

    def _clipped(self, gradients: list[tf.Tensor]) -> tuple[list[tf.Tensor], tf.Tensor]:
        """The gradients, clipped by the norm of the whole, and that norm without loss scaling.

        Where the norm is not finite the gradients are zeros, so that the weights stay what they
        were; loss scaling sees to that by itself.
        """
        norm = tf.linalg.global_norm(gradients)
        loss_scale = getattr(self._optimizer, "dynamic_scale", None)
        if loss_scale is not None:
            loss_scale = tf.cast(loss_scale, norm.dtype)
            if self._clip_norm:
                most = self._clip_norm * loss_scale
                gradients, _ = tf.clip_by_global_norm(gradients, most, use_norm=norm)
            return gradients, norm / loss_scale
        factor = tf.ones_like(norm)
        if self._clip_norm:
            factor = self._clip_norm / tf.maximum(norm, self._clip_norm)
        factor = tf.where(tf.math.is_finite(norm), factor, tf.zeros_like(norm))
        factors = {gradient.dtype: tf.cast(factor, gradient.dtype) for gradient in gradients}
        return [
            tf.math.multiply_no_nan(gradient, factors[gradient.dtype]) for gradient in gradients
        ], norm


def make_evaluation_step(
    model: keras.Model,
    strategy: tf.distribute.Strategy,
    loss: Callable = token_cross_entropy,
    label_smoothing: float = 0.0,
    static_shapes: bool = False,
) -> Callable:
    """A function from a batch, as the strategy's iterator gives it, to the sums in `SUMS`, (4,)."""
    compiled = ReplicaFunctions(strategy, static_shapes)

    def evaluate_replica(batch: Any) -> tf.Tensor:
        inputs, labels = batch
        sums = tf.stack(loss(labels, model(inputs, training=False), label_smoothing))
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, sums)

    return partial(compiled, evaluate_replica)


def _cut(batch: Any, shards: int) -> list[Any]:
    """The rows of a batch in shards of about equal size."""
    if shards == 1:
        return [batch]
    flat = tf.nest.flatten(batch)
    rows = tf.shape(flat[0])[0]
    borders = [rows * shard // shards for shard in range(shards + 1)]
    return [
        tf.nest.pack_sequence_as(batch, [array[begin:end] for array in flat])
        for begin, end in itertools.pairwise(borders)
    ]


def _make_accumulators(model: keras.Model, strategy: tf.distribute.Strategy) -> list[tf.Variable]:
    """One variable a replica for the sums and for each gradient."""

    def zeros(shape: tuple, dtype: str) -> tf.Variable:
        return tf.Variable(
            tf.zeros(shape, dtype),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    with strategy.scope():
        variables = model.trainable_variables
        wide = any(variable.dtype == "float64" for variable in variables)
        sums = zeros((len(SUMS),), "float64" if wide else "float32")
        return [sums, *(zeros(variable.shape, variable.dtype) for variable in variables)]


def _specs(arguments: tuple, relaxed: bool) -> list:
    """The types of the arguments, their sizes unknown if `relaxed`."""

    def spec(value: Any) -> Any:
        if isinstance(value, tf.distribute.DistributedValues):
            parts = [spec(part) for part in value.values]
            return type(value._type_spec)(*parts)
        shape = [None] * value.shape.rank if relaxed else value.shape
        return tf.TensorSpec(shape, value.dtype)

    return list(tf.nest.map_structure(spec, arguments))

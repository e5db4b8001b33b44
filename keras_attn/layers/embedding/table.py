"""A table of vectors."""

import keras
from keras import ops

from keras_attn.layers.adaptable import Adaptable
from keras_attn.layers.configuration import ConfiguredLayer
from keras_attn.layers.recomputation import Rematerialized


class EmbeddingTable(ConfiguredLayer, Adaptable, Rematerialized, keras.layers.Embedding):
    """`keras.layers.Embedding` for layers that do more than looking up vectors.

    A subclass looks them up with `_look_up`, whether the table is quantized or not.
    """

    fixed_arguments = ("input_dim", "output_dim", "mask_zero")

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def quantized_call(self, *arguments, **options):
        return self.call(*arguments, **options)

    def _look_up(self, ids):
        """Vectors (*shape of ids, size), of the compute dtype."""
        quantized = {"int8": self._int8_call, "int4": self._int4_call}
        vectors = quantized.get(self.quantization_mode, super().call)(ids)
        return ops.cast(vectors, self.compute_dtype)

    def _adapters(self):
        made = hasattr(self, "lora_embeddings_a")
        return [(self.lora_embeddings_a, self.lora_embeddings_b)] if made else []


class AddedEmbedding(EmbeddingTable):
    """A table whose vectors are added to others, and have their size.

    Args:
        rows: Number of vectors.
        embeddings_initializer: Initializer of the vectors.
        embeddings_regularizer: Regularizer of the vectors.
        **kwargs: Arguments of `keras.layers.Embedding`.
    """

    fixed_arguments = (*EmbeddingTable.fixed_arguments, "rows")

    def __init__(
        self,
        rows: int,
        embeddings_initializer="glorot_uniform",
        embeddings_regularizer=None,
        **kwargs,
    ):
        super().__init__(
            int(rows),
            1,  # that of the inputs, once the layer is built
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            **kwargs,
        )
        self.supports_masking = True

    def build(self, inputs_shape):
        self.output_dim = inputs_shape[-1]
        super().build()

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def compute_output_spec(self, inputs, *arguments, **options):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def _added(self, inputs, ids):
        vectors = self._look_up(ids)  # (1 or batch, length, features)
        return ops.cast(inputs, vectors.dtype) + vectors

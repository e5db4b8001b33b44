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

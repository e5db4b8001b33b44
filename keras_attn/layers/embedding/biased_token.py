"""Token embeddings whose logits have a bias."""

from keras import ops

from keras_attn.layers.embedding.token import TokenEmbedding


class BiasedTokenEmbedding(TokenEmbedding):
    """A `TokenEmbedding` that adds a learned number to the logit of each token."""

    def build(self, input_shape=None):
        super().build(input_shape)
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocabulary_size,), initializer="zeros"
        )

    @property
    def variable_serialization_spec(self):
        spec = super().variable_serialization_spec
        return {mode: [*names, "output_bias"] for mode, names in spec.items()}

    def logits(self, vectors, output_kernel):
        logits = super().logits(vectors, output_kernel)
        return ops.add(logits, ops.cast(self.output_bias, logits.dtype))

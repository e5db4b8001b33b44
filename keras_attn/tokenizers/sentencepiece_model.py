"""A SentencePiece model as a resource of the graph."""

import hashlib

import tensorflow as tf
from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer

from keras_attn.validation import UserError, require


class SentencePieceModel(tf.saved_model.experimental.TrackableResource):
    """A SentencePiece model that still works after `keras.utils.set_random_seed`.

    `tf_text.SentencepieceTokenizer` leaves its resource to the kernel that made it, and clearing
    the kernel cache (which setting a seed does) destroys it. A resource with a name of its own
    stays until the process ends; named after the model's digest, it is shared by all tokenizers
    with that model.

    Args:
        model: The serialized model.

    Raises:
        UserError: `model` is not a SentencePiece model.
    """

    def __init__(self, model: bytes) -> None:
        require(isinstance(model, bytes), "`model` must be the bytes of a model.", type=type(model))
        super().__init__()
        self._model = model
        try:
            _ = self.resource_handle  # made now: made within a graph it would belong to that graph
        except tf.errors.OpError:
            raise UserError(
                "`model` must be a serialized SentencePiece model. "
                f"Received: {len(model)} bytes of another format."
            ) from None

    def _create_resource(self) -> tf.Tensor:
        return gen_sentencepiece_tokenizer.sentencepiece_op(
            model=self._model, shared_name=hashlib.sha256(self._model).hexdigest()
        )

    def pieces(self) -> list[str]:
        """Returns every piece, in the order of ids."""
        handle = self.resource_handle
        size = int(gen_sentencepiece_tokenizer.sentencepiece_vocab_size_op(handle))
        pieces = gen_sentencepiece_tokenizer.sentencepiece_id_to_string_op(
            handle, tf.range(size, dtype=tf.int32)
        )
        return [piece.decode() for piece in pieces.numpy()]

    def encode(self, strings: tf.Tensor, dtype: tf.DType = tf.int32) -> tf.RaggedTensor:
        """Splits strings (batch,) into pieces: their ids, or with `tf.string` as dtype their texts.

        Args:
            strings: The strings.
            dtype: `tf.int32` or `tf.string`.

        Returns:
            The pieces (batch, None).
        """
        values, row_splits = gen_sentencepiece_tokenizer.sentencepiece_tokenize_op(
            self.resource_handle,
            strings,
            nbest_size=0,
            alpha=1.0,
            add_bos=False,
            add_eos=False,
            reverse=False,
            out_type=dtype,
        )
        return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)

    def encode_with_offsets(self, strings: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Splits strings (batch,) into pieces, and finds their bytes.

        Returns:
            The ids of the pieces, and where each begins and ends, int32 (batch, None).
        """
        values, row_splits, begins, ends = (
            gen_sentencepiece_tokenizer.sentencepiece_tokenize_with_offsets_op(
                self.resource_handle,
                strings,
                nbest_size=0,
                alpha=1.0,
                add_bos=False,
                add_eos=False,
                reverse=False,
                out_type=tf.int32,
            )
        )
        ids = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
        return ids, *(ids.with_values(tf.cast(one, tf.int32)) for one in (begins, ends))

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Converts ids of the model, RaggedTensor int32 (batch, None), to strings (batch,)."""
        return gen_sentencepiece_tokenizer.sentencepiece_detokenize_op(
            self.resource_handle,
            ids.values,
            ids.row_splits,
            add_bos=False,
            add_eos=False,
            reverse=False,
        )

"""Conversion of arrays to and from the tensors of gRPC messages, as in TensorFlow Serving."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from keras_attn.serving.errors import invalid

_MOST_DIMENSIONS = 254  # of TensorFlow
# data type -> the field that holds its values
_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "float16": "half_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "bool": "bool_val",
    "object": "string_val",
} | dict.fromkeys(("int32", "int16", "int8", "uint16", "uint8"), "int_val")


def to_array(name: str, tensor: TensorProto, most: int) -> np.ndarray:
    """Returns the values of a tensor, strings as an object array of bytes.

    Args:
        name: The input's name, for errors.
        tensor: The tensor from the client.
        most: Most values that it may have. Its shape may claim more values than it contains.

    Raises:
        RequestError: Shape and values do not match, or there are too many values.
    """
    dimensions = len(tensor.tensor_shape.dim)
    if dimensions > _MOST_DIMENSIONS:
        raise invalid(f"Input {name!r} has {dimensions} dimensions, which is too many.")
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise invalid(f"Input {name!r} must have a shape of known sizes.")
    if math.prod(shape) > most:
        raise invalid(f"Input {name!r} may have at most {most} values. Received the shape {shape}.")
    try:
        array = tf.make_ndarray(tensor)
    except (TypeError, ValueError, KeyError):
        raise invalid(f"Input {name!r} is not a tensor of the shape {shape}.") from None
    return array


def to_proto(array: np.ndarray) -> TensorProto:
    """Returns a tensor with its values in the field of their type."""
    is_string = array.dtype == object
    dtype = tf.string if is_string else tf.as_dtype(array.dtype)
    proto = tf.make_tensor_proto([], dtype=dtype, shape=[0])
    proto.ClearField("tensor_shape")
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    values = array.view(np.uint16) if array.dtype == np.float16 else array
    getattr(proto, _FIELDS[str(array.dtype)]).extend(values.ravel().tolist())
    return proto

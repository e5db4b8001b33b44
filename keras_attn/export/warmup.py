"""Warm-up records, which TensorFlow Serving replays before it takes requests.

The file is a TFRecord of `PredictionLog`; the server refuses a model if one record fails, and
accepts at most 1,000 records.

Reference: tensorflow/core/lib/io/record_writer.h for the framing, RFC 3720 for CRC-32C.
"""

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from keras_attn.export.c_api import DTYPE_CODES, DTYPES, STRING
from keras_attn.export.layout import WARMUP
from keras_attn.export.messages import PredictionLog, TensorProto
from keras_attn.reading import read_bytes
from keras_attn.validation import UserError, require

MAX_RECORDS = 1000
MAX_ROWS = 32
"""Most rows in a record; a server with batching refuses requests larger than its batches."""

Request = tuple[str, Mapping[str, np.ndarray]]


def write_warmup(version_folder: Path, requests: Iterable[Request]) -> None:
    """Writes one record for each request: the name of a signature, and its inputs."""
    records = [_to_log(signature, inputs) for signature, inputs in requests]
    require(
        len(records) <= MAX_RECORDS,
        f"TensorFlow Serving takes at most {MAX_RECORDS} warm-up records.",
        records=len(records),
    )
    path = version_folder / WARMUP
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(_frame(record) for record in records))


def read_warmup(version_folder: Path) -> list[Request]:
    """Returns the requests of the warm-up file; none where there is no file.

    Raises:
        UserError: The file is damaged.
    """
    path = version_folder / WARMUP
    if not path.is_file():
        return []
    try:
        return [_from_log(record) for record in _records(read_bytes(path))]
    except Exception as error:  # protobuf's DecodeError has no public base but Exception
        raise UserError(f"{path} is damaged: {error}.") from error


def _to_log(signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    log = PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(_to_proto(array))
    return log.SerializeToString(deterministic=True)


def _from_log(record: bytes) -> Request:
    request = PredictionLog.FromString(record).predict_log.request
    inputs = {name: _from_proto(tensor) for name, tensor in sorted(request.inputs.items())}
    return request.model_spec.signature_name or "serving_default", inputs


def _to_proto(array: np.ndarray) -> TensorProto:
    tensor = TensorProto(dtype=DTYPE_CODES[array.dtype])
    for size in array.shape:
        tensor.tensor_shape.dim.add(size=size)
    if array.dtype == object:
        tensor.string_val.extend(array.ravel().tolist())
    else:
        tensor.tensor_content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return tensor


def _from_proto(tensor: TensorProto) -> np.ndarray:
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.dtype != STRING:
        return np.frombuffer(tensor.tensor_content, DTYPES[tensor.dtype]).reshape(shape)
    return np.array(list(tensor.string_val), object).reshape(shape)


def _frame(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return length + _masked_crc(length) + record + _masked_crc(record)


def _records(content: bytes) -> list[bytes]:
    records: list[bytes] = []
    start = 0
    while start < len(content):
        length = content[start : start + 8]
        end = start + 12 + int.from_bytes(length, "little")
        record, crc = content[start + 12 : end], content[end : end + 4]
        intact = content[start + 8 : start + 12] == _masked_crc(length)
        if not intact or crc != _masked_crc(record):
            raise ValueError(f"record {len(records) + 1} does not match its checksum")
        records.append(record)
        start = end + 4
    return records


def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC_TABLE = _crc_table()


def crc32c(content: bytes) -> int:
    """Returns the CRC-32C (Castagnoli) of some bytes."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked_crc(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

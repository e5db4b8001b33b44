import struct

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import warmup
from keras_attn.export.messages import PredictionLog
from tests.export.toy import strings
from tests.refusals import refused

REQUEST = ("token_ids", {"text": strings(b"ab", b"\xff"), "ids": np.array([[5, 7, 11]], np.int32)})
# What tensorflow-serving-api 2.21.0 makes of the same request:
#   log = prediction_log_pb2.PredictionLog()
#   log.predict_log.request.model_spec.signature_name = "token_ids"
#   inputs = log.predict_log.request.inputs
#   inputs["text"].CopyFrom(tf.make_tensor_proto([b"ab", b"\xff"]))
#   inputs["ids"].CopyFrom(tf.make_tensor_proto(np.array([[5, 7, 11]], np.int32)))
#   print(log.SerializeToString(deterministic=True).hex())
BY_SERVING_API = bytes.fromhex(
    "324b0a490a0b1a09746f6b656e5f69647312210a03696473121a08031208120208011202080322"
    "0c05000000070000000b00000012170a0474657874120f0807120412020802420261624201ff"
)


def _records(folder):
    # TensorFlow's own reader, which checks both checksums of a record.
    return [record.numpy() for record in tf.data.TFRecordDataset(str(folder / warmup.WARMUP))]


def test_a_record_is_what_servings_own_classes_write(tmp_path):
    warmup.write_warmup(tmp_path, [REQUEST])
    assert _records(tmp_path) == [BY_SERVING_API]


def test_tensors_are_what_tensorflow_reads(tmp_path):
    arrays = {
        "float": np.array([[1.5, -np.inf]], np.float32),
        "int": np.array([2**40, -3]),
        "bool": np.array([True, False, True]),
        "text": strings("日本".encode(), b""),
    }
    warmup.write_warmup(tmp_path, [("serving_default", arrays)])
    [record] = _records(tmp_path)
    inputs = PredictionLog.FromString(record).predict_log.request.inputs
    for name, array in arrays.items():
        tensor = tf.io.parse_tensor(
            inputs[name].SerializeToString(), tf.string if name == "text" else array.dtype
        )
        assert tensor.numpy().tolist() == array.tolist()


def test_requests_survive_the_file(tmp_path):
    many = ("serving_default", {"text": strings(*[b"x" * 300] * 7)})
    warmup.write_warmup(tmp_path, [REQUEST, many])
    assert len(_records(tmp_path)) == 2
    read = warmup.read_warmup(tmp_path)
    assert [name for name, _ in read] == ["token_ids", "serving_default"]
    for (_, inputs), (_, written) in zip(read, (REQUEST, many), strict=True):
        assert sorted(inputs) == sorted(written)
        for name, array in written.items():
            assert inputs[name].dtype == array.dtype
            assert inputs[name].tolist() == array.tolist()


@pytest.mark.parametrize("position", [3, 9, 30, -2])
def test_a_changed_byte_is_noticed(tmp_path, position):
    warmup.write_warmup(tmp_path, [REQUEST, REQUEST])
    path = tmp_path / warmup.WARMUP
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    refused(r"warmup_requests is damaged: record [12] does not match", warmup.read_warmup, tmp_path)


def test_a_record_of_something_else_is_noticed(tmp_path):
    path = tmp_path / warmup.WARMUP
    path.parent.mkdir()
    path.write_bytes(warmup._frame(b"\x32\xff"))
    refused("warmup_requests is damaged: ", warmup.read_warmup, tmp_path)


def test_no_file_means_no_requests(tmp_path):
    assert warmup.read_warmup(tmp_path) == []


def test_serving_takes_a_thousand_records(tmp_path):
    refused(r"at most 1000.*records=1001", warmup.write_warmup, tmp_path, [REQUEST] * 1001)


def test_crc32c_of_known_bytes():
    # RFC 3720, B.4: 32 zeros, 32 bytes of 0xff, 0 to 31; and the usual check value.
    assert warmup.crc32c(bytes(32)) == struct.unpack("<I", bytes.fromhex("aa36918a"))[0]
    assert warmup.crc32c(b"\xff" * 32) == struct.unpack("<I", bytes.fromhex("43aba862"))[0]
    assert warmup.crc32c(bytes(range(32))) == struct.unpack("<I", bytes.fromhex("4e79dd46"))[0]
    assert warmup.crc32c(b"123456789") == 0xE3069283

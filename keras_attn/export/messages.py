"""The protobuf messages of a SavedModel and of a warm-up record, without importing TensorFlow.

Importing any of TensorFlow's generated message classes runs `tensorflow/__init__.py`, which takes
seconds and would spoil a check that claims to need no Python of TensorFlow. So the fields that are
read or written here are declared by number; protobuf keeps all others as unknown fields.

Enumerations are declared as int32, which has the same encoding.

Reference: tensorflow/core/protobuf/{saved_model,meta_graph}.proto,
tensorflow/core/framework/*.proto, tensorflow_serving/apis/{prediction_log,predict,model}.proto.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "keras_attn.export"
_SCALARS = {"bool": 8, "bytes": 12, "int32": 5, "int64": 3, "string": 9}
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3

# message -> field -> (number, type): "[T]" is repeated, "{T}" is a map from string to T.
_FIELDS = {
    "SavedModel": {"meta_graphs": (2, "[MetaGraphDef]")},
    "MetaGraphDef": {
        "meta_info_def": (1, "MetaInfoDef"),
        "graph_def": (2, "GraphDef"),
        "signature_def": (5, "{SignatureDef}"),
    },
    "MetaInfoDef": {"tags": (4, "[string]"), "tensorflow_version": (5, "string")},
    "GraphDef": {"node": (1, "[NodeDef]"), "library": (2, "FunctionDefLibrary")},
    "FunctionDefLibrary": {"function": (1, "[FunctionDef]")},
    "FunctionDef": {
        "signature": (1, "OpDef"),
        "node_def": (3, "[NodeDef]"),
        "attr": (5, "{AttrValue}"),
    },
    "NodeDef": {"name": (1, "string"), "op": (2, "string"), "attr": (5, "{AttrValue}")},
    "AttrValue": {"b": (5, "bool"), "tensor": (8, "TensorProto")},
    "OpDef": {"name": (1, "string")},
    "OpList": {"op": (1, "[OpDef]")},
    "SignatureDef": {"inputs": (1, "{TensorInfo}"), "outputs": (2, "{TensorInfo}")},
    "TensorInfo": {
        "name": (1, "string"),
        "dtype": (2, "int32"),
        "tensor_shape": (3, "TensorShape"),
        "composite_tensor": (5, "CompositeTensor"),
    },
    "CompositeTensor": {},
    "TensorShape": {"dim": (2, "[Dimension]"), "unknown_rank": (3, "bool")},
    "Dimension": {"size": (1, "int64")},
    "TensorProto": {
        "dtype": (1, "int32"),
        "tensor_shape": (2, "TensorShape"),
        "tensor_content": (4, "bytes"),
        "string_val": (8, "[bytes]"),
    },
    "PredictionLog": {"predict_log": (6, "PredictLog")},
    "PredictLog": {"request": (1, "PredictRequest")},
    "PredictRequest": {"model_spec": (1, "ModelSpec"), "inputs": (2, "{TensorProto}")},
    "ModelSpec": {"signature_name": (3, "string")},
}


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number, label=_OPTIONAL)
    if kind[0] in "[{":
        field.label = _REPEATED
    inner = kind.strip("[]{}")
    if kind[0] == "{":
        # A map is a repeated message of key (1) and value (2).
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, inner)
        inner = f"{message.name}.{entry.name}"
    if inner in _SCALARS:
        field.type = _SCALARS[inner]
    else:
        field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{inner}"


def _message_classes() -> dict[str, type]:
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_attn/export/messages.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    # A pool of its own: the same process may also hold TensorFlow's messages.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _FIELDS
    }


globals().update(_message_classes())  # messages.pyi declares them

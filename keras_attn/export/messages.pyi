# The fields that messages.py declares by number.
from collections.abc import MutableMapping, MutableSequence
from typing import Any, Self

class _Message:
    def __init__(self, **fields: object) -> None: ...
    @classmethod
    def FromString(cls, content: bytes) -> Self: ...
    def SerializeToString(self, deterministic: bool = ...) -> bytes: ...
    def CopyFrom(self, other: Self) -> None: ...

class SavedModel(_Message):
    meta_graphs: MutableSequence[MetaGraphDef]

class MetaInfoDef(_Message):
    tags: MutableSequence[str]
    tensorflow_version: str

class MetaGraphDef(_Message):
    meta_info_def: MetaInfoDef
    graph_def: GraphDef
    signature_def: MutableMapping[str, SignatureDef]

class FunctionDefLibrary(_Message):
    function: MutableSequence[FunctionDef]

class GraphDef(_Message):
    node: MutableSequence[NodeDef]
    library: FunctionDefLibrary

class OpDef(_Message):
    name: str

class OpList(_Message):
    op: MutableSequence[OpDef]

class AttrValue(_Message):
    b: bool
    tensor: TensorProto

class FunctionDef(_Message):
    signature: OpDef
    node_def: MutableSequence[NodeDef]
    attr: MutableMapping[str, AttrValue]

class NodeDef(_Message):
    name: str
    op: str
    attr: MutableMapping[str, AttrValue]

class TensorShape(_Message):
    # A repeated message: a sequence whose `add` appends a new one.
    dim: Any
    unknown_rank: bool

class CompositeTensor(_Message): ...

class TensorInfo(_Message):
    name: str
    dtype: int
    tensor_shape: TensorShape
    composite_tensor: CompositeTensor

class SignatureDef(_Message):
    inputs: MutableMapping[str, TensorInfo]
    outputs: MutableMapping[str, TensorInfo]

class TensorProto(_Message):
    dtype: int
    tensor_shape: TensorShape
    tensor_content: bytes
    string_val: MutableSequence[bytes]

class ModelSpec(_Message):
    signature_name: str

class PredictRequest(_Message):
    model_spec: ModelSpec
    inputs: MutableMapping[str, TensorProto]

class PredictLog(_Message):
    request: PredictRequest

class PredictionLog(_Message):
    predict_log: PredictLog

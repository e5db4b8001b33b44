"""TensorFlow Serving's gRPC services, with the stubs of tensorflow-serving-api."""

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
)
from tensorflow_serving.apis.get_model_status_pb2 import (
    GetModelStatusRequest,
    GetModelStatusResponse,
)
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from keras_attn.serving.batching import Arrays
from keras_attn.serving.errors import Code, RequestError, invalid
from keras_attn.serving.json_codec import DEFAULT_SIGNATURE
from keras_attn.serving.loaded_version import check_names
from keras_attn.serving.model_server import ModelServer, signature_of
from keras_attn.serving.tensor_protos import to_array, to_proto

_Context = grpc.aio.ServicerContext


class WholeMessages(grpc.aio.ServerInterceptor):
    """An unparsable message, reported to the client; grpc would log a traceback instead."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Parses a message and reports errors to the client."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None

        async def answer(content: bytes, context: _Context) -> Any:
            try:
                request = handler.request_deserializer(content)
            except DecodeError:
                await context.abort(grpc.StatusCode.INTERNAL, "The message cannot be parsed.")
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer, response_serializer=handler.response_serializer
        )


def add_services(server: ModelServer, to: grpc.aio.Server) -> None:
    """Adds the services to a gRPC server.

    Args:
        server: The models to serve.
        to: The asyncio gRPC server.
    """
    services = _Services(server)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(services, to)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(services, to)


def _answering(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def answer(self: Any, request: Any, context: _Context) -> Any:
        try:
            return await method(self, request, context)
        except RequestError as error:
            code, message = error.code, str(error)
        except Exception as error:  # a mistake in the server, which goes on
            self._server.log(f"error in the server: {error!r}")
            code, message = Code.INTERNAL, "An error in the server."
        return await context.abort(grpc.StatusCode[code.name], message)

    return answer


@_answering
async def _unimplemented(*_: Any) -> None:
    raise RequestError(
        Code.UNIMPLEMENTED, "Only Predict, GetModelMetadata and GetModelStatus are supported."
    )


class _Services(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    Classify = Regress = MultiInference = HandleReloadConfigRequest = _unimplemented

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    @_answering
    async def Predict(  # noqa: N802
        self, request: PredictRequest, context: _Context
    ) -> PredictResponse:
        start = time.perf_counter()
        code = Code.CANCELLED
        try:
            response = await self._predict(request, context)
            code = Code.OK
            return response
        except RequestError as error:
            code = error.code
            raise
        finally:
            self._server.count(request.model_spec.name, "grpc", code.name, start)

    @_answering
    async def GetModelMetadata(  # noqa: N802
        self, request: GetModelMetadataRequest, _: _Context
    ) -> GetModelMetadataResponse:
        if not request.metadata_field:
            raise invalid("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != "signature_def":
                raise invalid(f"Metadata field {field:.100} is not supported")
        return self._server.metadata(*_which(request))

    async def _predict(self, request: PredictRequest, context: _Context) -> PredictResponse:
        version = self._server.version(*_which(request))
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        unknown = f'Serving signature key "{name:.100}" not found.'
        signature = signature_of(version, name, RequestError(Code.FAILED_PRECONDITION, unknown))
        check_names(name, signature, request.inputs)
        wanted = list(dict.fromkeys(request.output_filter)) or sorted(signature.outputs)
        for output in wanted:
            if output not in signature.outputs:
                raise invalid(f"output tensor alias not found in signature: {output:.100}")
        most = self._server.limits.values
        inputs = {key: to_array(key, tensor, most) for key, tensor in request.inputs.items()}
        timeout = context.time_remaining()
        outputs = await self._server.predict(version, name, inputs, timeout)
        return _response(request.model_spec.name, version.number, name, outputs, wanted)

    @_answering
    async def GetModelStatus(  # noqa: N802
        self, request: GetModelStatusRequest, _: _Context
    ) -> GetModelStatusResponse:
        return self._server.status(*_which(request))


def _which(request: Any) -> tuple[str, int | None, str]:
    if not request.HasField("model_spec"):
        raise invalid("Missing ModelSpec")
    spec: ModelSpec = request.model_spec
    number = spec.version.value if spec.HasField("version") else None
    return spec.name, number, spec.version_label


def _response(
    model: str, version: int, signature: str, outputs: Arrays, wanted: list[str]
) -> PredictResponse:
    response = PredictResponse()
    response.model_spec.name = model
    response.model_spec.version.value = version
    response.model_spec.signature_name = signature
    for name in wanted:
        response.outputs[name].CopyFrom(to_proto(outputs[name]))
    return response

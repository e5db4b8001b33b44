"""A development server with TensorFlow Serving's REST and gRPC API, for one machine.

It runs models in TensorFlow's C++ runtime, as TensorFlow Serving does. Use TensorFlow Serving in
production, with the same models and the same clients.
"""

from keras_attn.serving.batching import BatchSettings
from keras_attn.serving.hosts import is_host, is_loopback
from keras_attn.serving.limits import Limits
from keras_attn.serving.model_server import ModelSettings
from keras_attn.serving.server import Ports, Server, serve_until_told

__all__ = [
    "BatchSettings",
    "Limits",
    "ModelSettings",
    "Ports",
    "Server",
    "is_host",
    "is_loopback",
    "serve_until_told",
]

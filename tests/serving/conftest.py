"""Servers of small models, in a thread with an event loop of its own."""

import asyncio
import contextlib
import threading

import pytest
import tensorflow as tf

from keras_attn.export import export_saved_model
from keras_attn.serving import Limits, ModelSettings, Ports, Server
from tests.export.toy import ToyTask, named, save
from tests.tasks.made import make_task

_PATIENCE = 300  # of a machine with other work

LIMITS = Limits(body_bytes=100_000, rows=32, text_bytes=10_000, read_timeout=0.5, timeout=20.0)


class Running:
    """A started server; `call` runs a coroutine in its event loop."""

    def __init__(self, server, loop):
        self.server, self.loop = server, loop
        self.rest, self.grpc = server.ports.rest, server.ports.grpc

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_PATIENCE)


@contextlib.contextmanager
def running(folders, settings=None, tell=lambda line: None, ports=None):
    # With XLA, for it is switched off for the whole process and for good.
    settings = settings or ModelSettings(limits=LIMITS, xla=True, poll_seconds=0.05)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(folders, ports or Ports(rest=0, grpc=0), settings, tell)
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(_PATIENCE)
        yield Running(server, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="session")
def task():
    return make_task()


@pytest.fixture(scope="session")
def models(tiny_export, tmp_path_factory):
    """Folders by name: the toy, a tiny task, and a model of odd signatures."""
    folder = tmp_path_factory.mktemp("models")
    export_saved_model(ToyTask(), folder / "toy", n_best=2, examples=["abc", "e", "aéb"])

    def odd(count, image_bytes):
        """Counts up to `count` one by one, and gives bytes back."""
        most = tf.reduce_max(count)
        total = tf.while_loop(lambda i: i < most, lambda i: (i + 1,), (tf.constant(0),))[0]
        same = tf.where(count > 0, count, 0) + 0 * total
        return {"count": same, "same_bytes": image_bytes}

    specs = (named("count", [None], tf.int32), named("image_bytes", [None], tf.string))
    save(folder / "odd" / "1", odd, *specs)
    return {"toy": folder / "toy", "tiny": tiny_export.parent, "odd": folder / "odd"}


@pytest.fixture(scope="session")
def served(models):
    with running(models) as server:
        yield server

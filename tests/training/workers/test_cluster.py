"""Who the workers are, and their waiting for each other; no TensorFlow in it."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_attn.training.workers import cluster
from keras_attn.training.workers.cluster import Cluster, WorkerLost, wait_for_all, why_lost
from keras_attn.validation import UserError
from tests.refusals import refused


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def config(task, **cluster):
    return json.dumps({"cluster": cluster, "task": task})


def test_environment_round_trip(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")  # so that what is set below is taken back
    assert Cluster.from_environment() is None
    cluster = Cluster(("a:1", "b:2", "[::1]:3"), 2)
    cluster.to_environment()
    assert Cluster.from_environment() == cluster
    assert not cluster.is_chief


def test_a_chief_is_the_first_worker(monkeypatch):
    workers = {"chief": ["c:1"], "worker": ["a:1", "b:2"]}
    monkeypatch.setenv("TF_CONFIG", config({"type": "worker", "index": 1}, **workers))
    assert Cluster.from_environment() == Cluster(("c:1", "a:1", "b:2"), 2)
    monkeypatch.setenv("TF_CONFIG", config({"type": "chief", "index": 0}, **workers))
    assert Cluster.from_environment().is_chief


@pytest.mark.parametrize(
    ("workers", "index", "message"),
    [
        (("a:1", "b"), 0, "must be given as host:port. Received: worker='b'."),
        (("a:1", "b:0"), 0, "must be given as host:port. Received: worker='b:0'."),
        (("a:1", "b:70000"), 0, "must be given as host:port. Received: worker='b:70000'."),
        ((":1",), 0, "must be given as host:port. Received: worker=':1'."),
        (("a:1", "a:1"), 0, "Every worker must have an address of its own."),
        (("a:1", "b:1"), 2, "one of the 2 workers, counted from 0. Received: worker_index=2."),
        (("a:1", "b:1"), -1, "one of the 2 workers, counted from 0. Received: worker_index=-1."),
    ],
)
def test_addresses_that_cannot_be(workers, index, message):
    refused(re.escape(message), Cluster, workers, index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "TF_CONFIG must be JSON such as"),
        ("[1]", "TF_CONFIG must be JSON such as"),
        ('{"cluster": {"worker": ["a:1"]}}', "TF_CONFIG must be JSON such as"),
        (config({"type": "worker", "index": "x"}, worker=["a:1"]), "must be JSON such as"),
        (config({"type": "ps", "index": 0}, worker=["a:1"], ps=["b:1"]), "task_types=['ps', 'ps']"),
        (config({"type": "worker", "index": 3}, worker=["a:1"]), "`worker_index` must be one of"),
    ],
)
def test_environment_that_is_malformed(monkeypatch, text, message):
    monkeypatch.setenv("TF_CONFIG", text)
    refused(re.escape(message), Cluster.from_environment)


def wait_in_threads(clusters, seconds):
    """The error of each worker, or None."""
    errors = {}

    def wait(cluster):
        errors[cluster.index] = None
        try:
            wait_for_all(cluster, seconds)
        except (WorkerLost, UserError) as error:
            errors[cluster.index] = error

    threads = [threading.Thread(target=wait, args=(cluster,)) for cluster in clusters]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(30)
    return errors


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_all_come(order):
    workers = tuple(f"127.0.0.1:{free_port()}" for _ in range(3))
    clusters = [Cluster(workers, index) for index in order]
    assert wait_in_threads(clusters, 20) == {0: None, 1: None, 2: None}
    with socket.create_server(("", int(workers[0].rpartition(":")[2]))):
        pass  # the port is free for TensorFlow


def test_those_who_do_not_come_are_named(capsys):
    workers = (f"127.0.0.1:{free_port()}", "b:1", "c:1", "d:1")
    errors = wait_in_threads([Cluster(workers, 0), Cluster(workers, 2)], 1.5)
    assert errors[0].reason == "Worker 1 (b:1), 3 (d:1) did not come within 1.5 s."
    assert errors[2].reason == errors[0].reason
    assert {error.code for error in errors.values()} == {75}
    assert errors[0].reason in capsys.readouterr().err


def test_strangers_are_not_workers():
    port = free_port()
    workers = (f"127.0.0.1:{port}", "b:1")
    chief = threading.Thread(target=wait_in_threads, args=([Cluster(workers, 0)], 20))
    chief.start()
    for line in (b"GET / HTTP/1.1\r\n", b"keras_attn worker 7\n", b"keras_attn worker 0\n", b""):
        with called(port) as stranger:
            stranger.sendall(line)
    assert chief.is_alive()
    assert wait_in_threads([Cluster(workers, 1)], 20) == {1: None}
    chief.join(20)
    assert not chief.is_alive()


@contextlib.contextmanager
def called(port):
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            break
        time.sleep(0.05)
    with connection:
        yield connection


def test_port_in_use_is_told():
    with socket.create_server(("", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UserError, match=f"chief's port must be free.*Received: '{address}'"):
            wait_for_all(Cluster((address, "b:1"), 0), 5)


def test_alarm_ends_a_process_that_runs_no_python():
    script = (
        "from keras_attn.training.workers.cluster import ended_by_alarm\n"
        "with ended_by_alarm(5, 'No.'): pass\n"
        "with ended_by_alarm(0.3, 'Nobody.'): (1 << 400_000_000) ** 5\n"  # holds the interpreter
    )
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=60, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (-signal.SIGALRM, "keras-attn: Nobody.\n")


NODE = (
    "{{function_node __wrapped__CollectiveReduceV2_Nordering_token_1_device_"
    "/job:worker/replica:0/task:0/device:CPU:0}} Collective ops is aborted by: "
)
UNHEARD = (
    "Error reported from /job:worker/task:0: The following tasks are unhealthy (stopped sending "
    "heartbeats):\n/job:worker/replica:0/task:1\nThe tasks have crashed. Check the task logs."
)


@pytest.mark.parametrize(("chiefs", "lost"), [(0, "1 (b:2)"), (1, "2 (c:3)")])
def test_a_lost_worker_that_tensorflow_names(chiefs, lost):
    cluster = Cluster(("a:1", "b:2", "c:3"), 0, chiefs)
    assert why_lost(cluster, NODE + UNHEARD) == f"Worker {lost} gives no sign of life."


def test_a_lost_worker_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        gone = f"127.0.0.1:{free_port()}"
        message = NODE + "failed to connect to all addresses; last error: UNKNOWN\nMore."
        found = why_lost(Cluster(("x:1", here, gone), 0), message)
        assert found == f"Worker 2 ({gone}) cannot be reached."
        found = why_lost(Cluster(("x:1", here), 0), message)
    assert found == (
        "The work with the other workers failed, though all can be reached: Collective ops is "
        "aborted by: failed to connect to all addresses; last error: UNKNOWN"
    )


def test_a_worker_whose_port_is_in_use_ends_all():
    """With the chief's word and its own, long before the time is up."""
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        workers = (f"127.0.0.1:{free_port()}", f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
        begin = time.monotonic()
        errors = wait_in_threads([Cluster(workers, index) for index in (2, 0, 1)], 20)
        assert time.monotonic() - begin < 10
    told = f"Worker 1 ({workers[1]}) cannot join: its port is in use."
    assert {index: error.reason for index, error in errors.items()} == dict.fromkeys(range(3), told)
    assert {error.code for error in errors.values()} == {75}


def test_two_processes_of_one_index_end_all():
    workers = tuple(f"127.0.0.1:{free_port()}" for _ in range(3))
    begin = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(wait_for_all, Cluster(workers, index), 20) for index in (0, 1, 1)]
        errors = [call.exception() for call in calls]
    assert time.monotonic() - begin < 10
    told = f"Two processes call themselves worker 1 ({workers[1]}); .* worker_index=1."
    assert isinstance(errors[0], UserError)
    assert re.match(re.escape(told).replace(r"\.\*", ".*"), str(errors[0]))
    assert [str(error) for error in errors] == [str(errors[0])] * 3


def test_another_version_ends_all(monkeypatch):
    workers = tuple(f"127.0.0.1:{free_port()}" for _ in range(2))
    older = (cluster._HELLO + b'{"index": 1, "version": "0.0.9"}\n', [])

    def call():
        port = int(workers[0].rpartition(":")[2])
        with called(port) as connection:
            connection.sendall(older[0])
            older[1].append(connection.makefile("rb").readline())

    thread = threading.Thread(target=call)
    thread.start()
    with pytest.raises(UserError, match=rf"version .* worker 1 \({workers[1]}\) .*'0\.0\.9'"):
        wait_for_all(Cluster(workers, 0), 20)
    thread.join(10)
    assert json.loads(older[1][0])["kind"] == "UserError"

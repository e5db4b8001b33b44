"""Which names a request may use for the server, by headers and over HTTP."""

import asyncio
import json

import pytest

from keras_attn.serving import Limits, ModelSettings, Ports
from keras_attn.serving.hosts import AllowedHosts, is_host
from tests.cli.conftest import keras_attn  # noqa: F401
from tests.serving.conftest import running
from tests.serving.hostile import http
from tests.serving.http import send

pytestmark = pytest.mark.tensorflow

BODY = b'{"instances": ["a"]}'
REFUSED = {
    "evil.example": {"host": "evil.example"},
    "with a port": {"host": "evil.example:8501"},
    "a name that begins alike": {"host": "localhost.evil.example"},
    "an address that begins alike": {"host": "127.0.0.1.evil.example"},
    "an address of another machine": {"host": "192.0.2.7:8501"},
    "all addresses": {"host": "0.0.0.0:8501"},
    "a user": {"host": "localhost@evil.example"},
    "a user of it": {"host": "evil.example@localhost"},
    "nothing": {"host": ""},
    "a port alone": {"host": ":8501"},
    "two names": {"host": "localhost, evil.example"},
    "a space": {"host": "localhost evil.example"},
    "half an address": {"host": "[::1"},
    "another address": {"host": "[2001:db8::1]:8501"},
    "a port that is none": {"host": "localhost:80x"},
    "a page": {"origin": "http://evil.example"},
    "a page of another port": {"origin": "https://evil.example:8501"},
    "a page without a name": {"origin": "null"},
    "an origin that is none": {"origin": "localhost"},
    "no origin": {"origin": ""},
    "a page, and the right host": {"host": "127.0.0.1:8501", "origin": "http://evil.example"},
}
ACCEPTED = {
    "no host": {},
    "an address": {"host": "127.0.0.1"},
    "with a port": {"host": "127.0.0.1:8501"},
    "of a tunnel": {"host": "localhost:9999"},
    "another loopback address": {"host": "127.8.9.1"},
    "IPv6": {"host": "[::1]"},
    "IPv6 with a port": {"host": "[::1]:8501"},
    "upper case": {"host": "LocalHost:8501"},
    "a trailing dot": {"host": "localhost.:8501"},
    "its own page": {"host": "localhost:8501", "origin": "http://localhost:8501"},
    "a page of this machine": {"origin": "http://[::1]:3000"},
}


def refused(hosts, headers):
    return hosts.refused([(name.encode(), value.encode()) for name, value in headers.items()])


@pytest.mark.parametrize("listening", ["127.0.0.1", "::1", "localhost"])
def test_names_on_a_loopback_host(listening):
    hosts = AllowedHosts(listening)
    assert [kind for kind, headers in REFUSED.items() if not refused(hosts, headers)] == []
    assert [kind for kind, headers in ACCEPTED.items() if refused(hosts, headers)] == []


@pytest.mark.parametrize(
    ("listening", "names", "host", "accepted"),
    [
        ("127.0.0.1", ("Models.example.",), "models.EXAMPLE:80", True),
        ("127.0.0.1", ("models.example",), "x.models.example", False),
        ("127.0.0.1", ("192.0.2.7", "2001:db8::1"), "192.0.2.7", True),
        ("127.0.0.1", ("192.0.2.7", "2001:db8::1"), "[2001:db8::1]:1", True),
        ("127.0.0.1", ("*",), "evil.example", True),
        ("0.0.0.0", (), "any.example", True),
        ("192.0.2.7", (), "any.example", True),
        ("192.0.2.7", ("models.example",), "any.example", False),
        ("192.0.2.7", ("models.example",), "192.0.2.7:8501", True),
        ("192.0.2.7", ("models.example",), "localhost", True),
    ],
)
def test_further_names_and_open_addresses(listening, names, host, accepted):
    assert (refused(AllowedHosts(listening, names), {"host": host}) is None) == accepted


def test_what_a_name_may_be():
    names = ["localhost", "a.example", "192.0.2.7", "::1", "[::1]", "*"]
    others = ["", "a:80", "a b", "http://a"]
    assert [name for name in names + others if is_host(name)] == names


@pytest.mark.parametrize(
    "path",
    ["/", "/page/models.json", "/metrics", "/v1/models/tiny", "/v1/models/tiny:predict"],
)
def test_all_paths_are_kept_from_other_pages(served, path):
    method = "POST" if path.endswith("predict") else "GET"
    body = BODY if method == "POST" else b""

    def ask(**headers):
        return asyncio.run(send(served.rest, http(body, path, method, **headers)))

    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        status, answer = ask(**headers)
        assert status == 403
        assert "evil.example" in json.loads(answer)["error"]
    assert ask(Host=f"localhost:{served.rest}")[0] == 200
    assert ask(Origin=f"http://127.0.0.1:{served.rest}")[0] == 200


def test_further_names_over_http(models):
    settings = ModelSettings(limits=Limits(), xla=True)
    ports = Ports(rest=0, grpc=0, allowed_hosts=("models.example",))
    with running({"toy": models["toy"]}, settings, ports=ports) as served:
        for host, status in {"models.example:1": 200, "evil.example": 403}.items():
            request = http(b"", "/v1/models/toy", "GET", Host=host)
            assert asyncio.run(send(served.rest, request))[0] == status


@pytest.mark.parametrize("host", ["a:80", "http://a", "a b", ""])
def test_names_on_the_command_line(keras_attn, host):  # noqa: F811
    error = keras_attn.refusal("serve", "g2p=.", "--allowed-hosts", host)
    assert f"A host must be a name or an address without a port. Received: host={host!r}." in error
